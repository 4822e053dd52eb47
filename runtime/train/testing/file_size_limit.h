// Makes the disk refuse files of more than so many bytes, as a quota does, while it lives. It holds
// for the whole process.
#ifndef RINGMASTER_RUNTIME_TRAIN_TESTING_FILE_SIZE_LIMIT_H_
#define RINGMASTER_RUNTIME_TRAIN_TESTING_FILE_SIZE_LIMIT_H_

#include <csignal>

#include <sys/resource.h>

namespace ringmaster::train::testing {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_{};
};

}  // namespace ringmaster::train::testing

#endif  // RINGMASTER_RUNTIME_TRAIN_TESTING_FILE_SIZE_LIMIT_H_

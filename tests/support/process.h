// A process under test: started with an environment, its output read line by line, its end awaited.
// Every wait has a deadline; a process that is left is killed with its group.
#ifndef RINGMASTER_TESTS_SUPPORT_PROCESS_H_
#define RINGMASTER_TESTS_SUPPORT_PROCESS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/file.h"

namespace ringmaster::testing {

class Process {
 public:
  // `inherit`: descriptors that the process keeps, under the same numbers.
  Process(const std::vector<std::string>& command,
          const std::map<std::string, std::string>& environment,
          const std::vector<int>& inherit = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of standard output, without its newline; nothing at the output's end, or when
  // none came in time.
  std::optional<std::string> Line();
  // Reads lines until this one; false when it does not come.
  bool AwaitLine(const std::string& line);
  void Signal(int signal) const;
  // The exit code, 128+n for death by signal n; nothing when it has not ended in time.
  std::optional<int> Wait();

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
  std::string pending_;
  std::optional<int> exit_code_;
};

// Whether the read end of a pipe comes to its end in time: everyone who held the other end is gone.
bool AwaitEndOfFile(int fd);

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_PROCESS_H_

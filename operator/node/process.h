// Starts child processes and reports their ends.
//
// All children are started from one permanent thread, because the parent-death signal that each
// child asks for is sent when the *thread* that forked it ends. A child has its own process group,
// its output goes to a file, and it inherits the read end of the lifeline: a pipe whose end of file
// tells it that this process is gone, however it went. So no child outlives its parent.
//
// What a child leaves behind goes with it, as a container's processes do, also what has moved into
// a group or session of its own: a variable marks all that descends from a child, and this process
// becomes a subreaper, so that orphans come to it. It must have no children but the supervisor's.
//
// Thread-safe. Destroying the supervisor kills every child's process group and waits for the
// children's ends.
#ifndef RINGMASTER_OPERATOR_NODE_PROCESS_H_
#define RINGMASTER_OPERATOR_NODE_PROCESS_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::node {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string>
      environment;        // NAME=value; all that the child gets, but for the supervisor's two
  std::string directory;  // working directory; this process's where empty
  std::string log_path;   // standard output and error are appended here
};

// How a process ended.
struct ProcessExit {
  int exit_code = 0;  // as a shell says it: 128 + n after signal n
  int signal = 0;     // 0 unless a signal ended it
};

class ProcessSupervisor {
 public:
  using OnExit = std::function<void(pid_t pid, ProcessExit exit)>;

  // `on_exit` is called once for each child, on the supervisor's thread; it must not block for
  // long.
  static absl::StatusOr<std::unique_ptr<ProcessSupervisor>> Create(OnExit on_exit);
  ~ProcessSupervisor();
  ProcessSupervisor(const ProcessSupervisor&) = delete;
  ProcessSupervisor& operator=(const ProcessSupervisor&) = delete;

  // Blocks until the program runs, or could not be started: kNotFound for a program or directory
  // that is not there, otherwise the system's words.
  absl::StatusOr<pid_t> Start(ProcessSpec spec);

  // Sends a signal to the child, or to its whole group. A child that has ended is ignored.
  void Signal(pid_t pid, int signal);
  void SignalGroup(pid_t pid, int signal);

 private:
  struct Request;
  struct Child {
    UniqueFd pidfd;
    std::string mark;  // "NAME=value", in the environment of all that descends from it
  };

  explicit ProcessSupervisor(OnExit on_exit) : on_exit_(std::move(on_exit)) {}

  void Loop();
  void ServeRequests();
  void WaitForChildren();
  void EndOrphansOf(const std::string& mark);
  absl::StatusOr<pid_t> Spawn(const ProcessSpec& spec);
  void Wake();

  const OnExit on_exit_;
  UniqueFd wake_;            // eventfd: a request waits, or the end has come
  UniqueFd lifeline_read_;   // inherited by the children
  UniqueFd lifeline_write_;  // held here alone
  std::mutex mutex_;
  std::condition_variable served_;
  std::vector<Request*> requests_;
  std::map<pid_t, Child> children_;
  int next_child_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_PROCESS_H_

// Starting a program as a worker's own: in a process group of its own, bound to its processors,
// with its output on one pipe, and not to outlive the thread that started it.
#ifndef RINGMASTER_LAUNCHER_SPAWN_H_
#define RINGMASTER_LAUNCHER_SPAWN_H_

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::launcher {

struct SpawnRequest {
  std::vector<std::string> command;                // at least the program; looked up in PATH
  std::map<std::string, std::string> environment;  // added to this process's own
  std::vector<int> cpus;                           // empty: as this process
};

struct Spawned {
  pid_t pid = -1;   // also its process group
  UniqueFd output;  // standard output and error together; not blocking
};

// kNotFound when there is no such program, kPermissionDenied when it cannot be executed; then
// nothing was started. The program gets SIGKILL when the calling thread ends, so call it from one
// that lives as long as the process. Its signals are unblocked and as by default.
absl::StatusOr<Spawned> Spawn(const SpawnRequest& request);

// 128+n for death by signal n, else the exit code.
int ExitCodeOf(int wait_status);

// Kills every descendant of this process and reaps it, until none is left or the bound has passed.
// The process must be a subreaper, or orphans escape. Blocks for as long as they take to die.
void KillDescendants();

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_SPAWN_H_

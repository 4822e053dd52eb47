// The ranks of a command as processes of this machine: its program once more for each.
//
// Each child has one end of a socket as its descriptor kControlFd: it says where it listens and is
// told where all do, and the round's key, which so stands in no command line. A child dies with its
// parent.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_LOCAL_PROCESSES_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_LOCAL_PROCESSES_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::local {

inline constexpr int kControlFd = 3;

// Starts `ranks` processes, each with `arguments` and "--rank" R, lets them meet and waits until
// all are over: the first exit code that is not 0, or 0. An error that names the rank, and all are
// killed: a rank does not say where it listens within 30 s, or ends before; it is stopped (SIGSTOP)
// for longer than `patience`; or it goes on for that long after another has ended.
absl::StatusOr<int> RunRanks(int ranks, const std::vector<std::string>& arguments,
                             std::chrono::seconds patience);

// In a child: tells the parent `address` and completes `options`: its members and its key.
absl::Status Meet(const std::string& address, int ranks, CommunicatorOptions* options);

}  // namespace ringmaster::collectives::local

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_LOCAL_PROCESSES_H_

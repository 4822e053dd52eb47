// What a launcher is told when it starts: by its command line, the program, and by the environment
// that the operator sets (common/contract.h), everything else.
#ifndef RINGMASTER_LAUNCHER_OPTIONS_H_
#define RINGMASTER_LAUNCHER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace ringmaster::launcher {

// spec.launch.mode
enum class LaunchMode {
  kNative,  // the native trainer: takes each round in process
  kExec,    // the command as it is, started for each round
  kTorch,   // with the environment that torchrun gives
  kMpi,     // with a host file and the variables that mpirun gives
};

struct Options {
  std::string ns;
  std::string job;
  std::string pod;
  std::string pod_uid;
  std::string pod_ip;
  std::vector<std::string> rendezvous;  // host:port each
  std::string rendezvous_ca;            // PEM; empty: the stream is plain text
  std::string token_file;               // of the pod's token, read at each dial; empty: none
  LaunchMode mode = LaunchMode::kNative;
  std::vector<std::string> command;  // the program; for kNative the trainer's path
  std::vector<int> cpus;             // empty: all that it may use
  std::string bind;                  // RINGMASTER_BIND: how threads are bound inside of them
  std::string kept_cores;            // RINGMASTER_CORES
  Duration grace{};                  // between SIGTERM and SIGKILL
  int lifeline_fd = -1;              // -1: none

  // The fewest that a test waits for: between Stop and SIGKILL.
  Duration stop_patience = std::chrono::seconds(5);
  // From the program's end until this process's: for telling the operator, and until it has stored
  // what it was told. Another operator leads after some 20 s where the one before has died.
  Duration close_patience = std::chrono::seconds(60);
  // The same for a pod that is terminating, from the end of `grace`: then the pod is killed soon.
  Duration last_moment = std::chrono::seconds(2);
};

// `arguments` without the program's own name; "--" before the command may be left out.
// kInvalidArgument names the variable that is missing or wrong.
absl::StatusOr<Options> ReadOptions(const std::vector<std::string>& arguments);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_OPTIONS_H_

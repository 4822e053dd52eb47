// Runs a program to its end, with a deadline and bounds on what it may print.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_RUN_PROGRAM_H_
#define RINGMASTER_OPERATOR_KUBE_REST_RUN_PROGRAM_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::kube::rest {

struct ProgramOutput {
  int exit_code = 0;  // 128 + n after signal n
  std::string standard_output;
  std::string standard_error;  // its end, where it is long
};

// Looks argv[0] up in PATH unless it holds a slash. The program gets this process's environment
// with `env` on top, no standard input, and a process group of its own, which is killed at the
// deadline, and when this process is asked to end by SIGINT, SIGTERM or SIGHUP: the calling thread
// holds these back meanwhile, so they take effect when this returns.
// kNotFound: no such program. kDeadlineExceeded: it did not end in time. kResourceExhausted: it
// printed more than 1 MiB. kCancelled: one of these signals came. Blocks; thread-safe.
absl::StatusOr<ProgramOutput> RunProgram(
    const std::vector<std::string>& argv,
    const std::vector<std::pair<std::string, std::string>>& env, std::chrono::milliseconds timeout);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_RUN_PROGRAM_H_

// `ringmaster run job.yaml`: the manifest through the real operator, on this machine.
//
// Starts the operator, its store and the local node in this process, submits the job, shows what
// happens until it ends, and prints as its last line what the job measured. Ctrl-C suspends the
// job: the workers checkpoint and leave, and the same command resumes. A second Ctrl-C ends at
// once. However this process ends, no worker is left behind.
#ifndef RINGMASTER_CLI_RUN_COMMAND_H_
#define RINGMASTER_CLI_RUN_COMMAND_H_

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct RunOptions {
  std::string manifest;          // path of the file
  std::vector<std::string> set;  // path=value, over the manifest
  std::optional<int> workers;    // over spec.workers.replicas
  bool plain = false;            // lines instead of the live view
  bool fresh = false;            // start over instead of resuming
  std::string metrics_address;   // where the operator's metrics are served; nowhere if empty
};

// Returns the exit code: 0 succeeded, 2 failed, 65 a bad manifest, 130 interrupted
// (docs/run-a-job.md has all).
int Run(const RunOptions& options);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_RUN_COMMAND_H_

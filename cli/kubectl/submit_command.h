// `kubectl ringmaster submit -f job.yaml`: checks a manifest as `ringmaster validate` does, then
// brings it into the cluster by server-side apply.
#ifndef RINGMASTER_CLI_KUBECTL_SUBMIT_COMMAND_H_
#define RINGMASTER_CLI_KUBECTL_SUBMIT_COMMAND_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/kubectl/connection.h"

namespace ringmaster::cli::kubectl {

struct SubmitOptions {
  std::string manifest;  // "-" for standard input
  std::vector<std::string> set;
  std::optional<int> workers;    // over spec.workers.replicas
  std::string output;            // "" for a line that says what was done; json, yaml, name
  bool force_conflicts = false;  // take fields that others have changed since
};

// Nothing is sent for a manifest that is wrong. Only what the manifest says is applied, so that a
// job that was scaled or suspended since stays so unless the manifest names that field.
int Submit(const ClusterFlags& flags, const SubmitOptions& options);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_SUBMIT_COMMAND_H_

// `kubectl ringmaster suspend`, `resume`, `scale` and `delete`: changes of a job that is there.
#ifndef RINGMASTER_CLI_KUBECTL_CHANGE_COMMAND_H_
#define RINGMASTER_CLI_KUBECTL_CHANGE_COMMAND_H_

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "cli/kubectl/connection.h"

namespace ringmaster::cli::kubectl {

// The workers checkpoint and leave, or come back and go on from there. Prints what was done.
// Returns the exit code: 1 when the job has ended.
int Suspend(const ClusterFlags& flags, const std::string& job);
int Resume(const ClusterFlags& flags, const std::string& job);

// Through the scale subresource. The exit code is 65 when the job may not have so many workers, and
// the message says how many it may.
int Scale(const ClusterFlags& flags, const std::string& job, int workers);

// Whether the stored job may have this many workers. Pure. kInvalidArgument says why not, and how
// many it may have.
absl::Status CheckWorkers(const nlohmann::json& job, int workers);

struct DeleteOptions {
  std::string job;
  bool wait = false;  // until the job and its pods are gone
  int timeout = 120;  // seconds to wait
};

// The exit code is 75 when it was waited for in vain; the message names the pods that are left.
int Delete(const ClusterFlags& flags, const DeleteOptions& options);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_CHANGE_COMMAND_H_

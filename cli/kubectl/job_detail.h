// One job for a person: what it trains, how far it is, who works for it, what stands in its way.
#ifndef RINGMASTER_CLI_KUBECTL_JOB_DETAIL_H_
#define RINGMASTER_CLI_KUBECTL_JOB_DETAIL_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::cli::kubectl {

// Pure. `pods` are the job's, as PodsOf lists them; `warnings` events of those that are pending
// (pod_warnings.h).
std::string JobDetail(const nlohmann::json& job, const std::vector<kube::ObjectPtr>& pods,
                      const std::vector<nlohmann::json>& warnings, Time now);

// The state of a pod as `kubectl get pods` would put it: "Running", "Pending: Unschedulable",
// "Failed: exit code 3", "Terminating".
std::string PodState(const nlohmann::json& pod);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_JOB_DETAIL_H_

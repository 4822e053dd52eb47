// Why pending pods are pending, in the words of those who should start them. A kubelet that waits
// for a ConfigMap, a Secret or a volume says so in events alone; the pod's status has nothing of
// it. Pure.
#ifndef RINGMASTER_CLI_KUBECTL_POD_WARNINGS_H_
#define RINGMASTER_CLI_KUBECTL_POD_WARNINGS_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::cli::kubectl {

// Of these the pods whose warnings are worth asking for: those that wait to be started, the first
// workers first, and not so many that asking takes long.
std::vector<kube::ObjectPtr> PendingPods(const std::vector<kube::ObjectPtr>& pods);

// The events that select this pod and no other of its name, as a field selector.
std::string WarningsSelector(const nlohmann::json& pod);

// The latest of these warnings, newest first: PENDING, LAST SEEN, WARNING, MESSAGE. Pods that are
// told the same share a row. Empty when there is nothing to tell. `warnings` are events of `pods`.
std::string WarningsTable(const std::vector<kube::ObjectPtr>& pods,
                          const std::vector<nlohmann::json>& warnings, Time now);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_POD_WARNINGS_H_

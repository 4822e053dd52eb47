// The parts of LoadInCluster that a test gives its own values for.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_IN_CLUSTER_H_
#define RINGMASTER_OPERATOR_KUBE_REST_IN_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "operator/kube/rest/config.h"

namespace ringmaster::kube::rest {

// `folder` holds ca.crt, token and namespace, as the kubelet mounts them.
absl::StatusOr<Config> InClusterConfig(const std::string& host, const std::string& port,
                                       const std::string& folder);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_IN_CLUSTER_H_

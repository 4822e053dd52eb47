// The volumes of a pod as folders, and the rewriting of paths under their mount points.
#ifndef RINGMASTER_OPERATOR_NODE_VOLUMES_H_
#define RINGMASTER_OPERATOR_NODE_VOLUMES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "operator/node/pod_plan.h"

namespace ringmaster::node {

// The folder (or hostPath file) of each volume, by the volume's name. kUnimplemented for a kind of
// volume that is not supported here.
absl::StatusOr<std::map<std::string, std::string>> VolumePaths(const kube::Json& pod,
                                                               const PlanContext& context);

// The entries of a ConfigMap or a Secret, decoded.
absl::StatusOr<std::map<std::string, std::string>> DataOf(const kube::Json& object);

// Mount points of one container, and where they lead.
using Mounts = std::map<std::string, std::string>;

absl::StatusOr<Mounts> ContainerMounts(const kube::Json& container,
                                       const std::map<std::string, std::string>& volumes);

// `text` with every path that lies under a mount point rewritten; the longest mount point wins. A
// path begins at the text's start or after one of "=:, " and a quote.
std::string RewritePaths(const std::string& text, const Mounts& mounts);

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_VOLUMES_H_

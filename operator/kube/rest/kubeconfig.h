// Kubeconfig files: reading, merging, and choosing a context. Inside of config.h's loaders; the
// errors are described there. Only ReadKubeconfig touches the disk, and SelectContext for the files
// that the entries name.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_KUBECONFIG_H_
#define RINGMASTER_OPERATOR_KUBE_REST_KUBECONFIG_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "operator/kube/rest/config.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::rest {

// The file's content, with every path in it made independent of the working directory.
absl::StatusOr<Json> ReadKubeconfig(const std::string& path);

// Entries of the same name are the first file's, and so is current-context.
Json MergeKubeconfigs(const std::vector<Json>& files);

// `context` empty: the current one. `origin` begins every message.
absl::StatusOr<Config> SelectContext(const Json& kubeconfig, const std::string& context,
                                     const std::string& origin);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_KUBECONFIG_H_

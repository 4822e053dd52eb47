// The paths and queries of the Kubernetes API. Pure.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_RESOURCE_PATH_H_
#define RINGMASTER_OPERATOR_KUBE_REST_RESOURCE_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::rest {

// "/api/v1/namespaces/default/pods", or without the namespace's part when `ns` is empty.
std::string CollectionPath(const ResourceType& type, std::string_view ns);

// "/apis/training.ringmaster.dev/v1alpha1/namespaces/default/trainingjobs/digits". The reason is
// BadRequest when a name is empty, or is one that would lead to another path ("..", "a/b"), or a
// namespaced kind has no namespace.
absl::StatusOr<std::string> ObjectPath(const ResourceType& type, const ObjectKey& key);

// "?a=1&b=x%2Cy" from pairs; a pair without a value is left out.
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_RESOURCE_PATH_H_

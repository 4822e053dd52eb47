// Which kind of object, and which one of that kind: the two names that every call of the client
// takes.
#ifndef RINGMASTER_OPERATOR_KUBE_TYPES_H_
#define RINGMASTER_OPERATOR_KUBE_TYPES_H_

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::kube {

using Json = nlohmann::json;

// An object that is shared and never changed: what lists, watches and caches hand out. Copy it to
// change it.
using ObjectPtr = std::shared_ptr<const Json>;

// A kind of object as discovery names it. The views must outlive the value: use string literals.
struct ResourceType {
  std::string_view group;    // "" is the core group
  std::string_view version;  // "v1"
  std::string_view plural;   // "pods", as in the path
  std::string_view kind;     // "Pod", as in the object
  bool namespaced = true;

  // "v1" or "group/version", as in the object's apiVersion.
  std::string ApiVersion() const;
  // "pods" or "leases.coordination.k8s.io", for messages and map keys.
  std::string Qualified() const;

  friend bool operator==(const ResourceType&, const ResourceType&) = default;
};

inline constexpr ResourceType kTrainingJob{"training.ringmaster.dev", "v1alpha1", "trainingjobs",
                                           "TrainingJob"};
inline constexpr ResourceType kPod{"", "v1", "pods", "Pod"};
inline constexpr ResourceType kService{"", "v1", "services", "Service"};
inline constexpr ResourceType kEvent{"", "v1", "events", "Event"};
inline constexpr ResourceType kConfigMap{"", "v1", "configmaps", "ConfigMap"};
inline constexpr ResourceType kSecret{"", "v1", "secrets", "Secret"};
inline constexpr ResourceType kLease{"coordination.k8s.io", "v1", "leases", "Lease"};

// One object of a kind. `ns` is empty for kinds that are not namespaced.
struct ObjectKey {
  std::string ns;
  std::string name;

  std::string ToString() const;  // "namespace/name", or "name" without a namespace

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
  friend bool operator==(const ObjectKey&, const ObjectKey&) = default;
};

}  // namespace ringmaster::kube

template <>
struct std::hash<ringmaster::kube::ObjectKey> {
  std::size_t operator()(const ringmaster::kube::ObjectKey& key) const noexcept {
    return std::hash<std::string>()(key.ns) * 1000003u ^ std::hash<std::string>()(key.name);
  }
};

#endif  // RINGMASTER_OPERATOR_KUBE_TYPES_H_

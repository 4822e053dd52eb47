#include "operator/manager/trim.h"

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ringmaster::manager {
namespace {

using kube::Json;

constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

// Leaves only these members of object[name], and no empty rest.
template <std::size_t N>
void KeepOf(Json& object, const char* name, const std::array<std::string_view, N>& members) {
  const auto place = object.find(name);
  if (place == object.end() || !place->is_object()) return;
  Json kept = Json::object();
  for (const std::string_view member : members) {
    const auto value = place->find(member);
    if (value != place->end()) kept[std::string(member)] = std::move(*value);
  }
  if (kept.empty()) {
    object.erase(place);
  } else {
    *place = std::move(kept);
  }
}

void TrimMetadata(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  metadata->erase("managedFields");
  const auto annotations = metadata->find("annotations");
  if (annotations != metadata->end() && annotations->is_object()) annotations->erase(kLastApplied);
}

}  // namespace

void TrimJob(Json& job) {
  TrimMetadata(job);
}

void TrimPod(Json& pod) {
  TrimMetadata(pod);
  KeepOf(pod, "spec", std::array<std::string_view, 2>{"nodeName", "schedulingGroup"});
  KeepOf(pod, "status",
         std::array<std::string_view, 6>{"phase", "reason", "message", "conditions",
                                         "initContainerStatuses", "containerStatuses"});
}

void TrimService(Json& service) {
  TrimMetadata(service);
  service.erase("spec");
  service.erase("status");
}

}  // namespace ringmaster::manager

#include "operator/manager/trim.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "operator/reconcile/pod_facts.h"

namespace ringmaster::manager {
namespace {

using kube::Json;

constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

// A copy of these members of an object; of anything else a copy.
template <typename Members = std::initializer_list<std::string_view>>
Json Only(const Json& object, const Members& members) {
  if (!object.is_object()) return object;
  Json kept = Json::object();
  for (const std::string_view member : members) {
    const auto value = object.find(member);
    if (value != object.end()) kept[std::string(member)] = *value;
  }
  return kept;
}

// A copy without this member, which is never copied.
Json Without(const Json& object, std::string_view member) {
  if (!object.is_object() || !object.contains(member)) return object;
  Json kept = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (name != member) kept[name] = value;
  }
  return kept;
}

Json TrimMetadata(const Json& metadata) {
  Json kept = Without(metadata, "managedFields");
  if (!kept.is_object()) return kept;
  const auto annotations = kept.find("annotations");
  if (annotations != kept.end() && annotations->is_object()) annotations->erase(kLastApplied);
  return kept;
}

// A copy of the object, its members as `keep` makes them; those it makes empty or null are left
// out.
Json Trimmed(const Json& object,
             const std::function<Json(const std::string& name, const Json& value)>& keep) {
  if (!object.is_object()) return object;
  Json kept = Json::object();
  for (const auto& [name, value] : object.items()) {
    Json rest = name == "metadata" ? TrimMetadata(value) : keep(name, value);
    if (!rest.is_null() && (!rest.empty() || value.empty())) kept[name] = std::move(rest);
  }
  return kept;
}

Json EachOnly(const Json& list, std::initializer_list<std::string_view> members) {
  if (!list.is_array()) return list;
  Json kept = Json::array();
  for (const Json& item : list) kept.push_back(Only(item, members));
  return kept;
}

Json ConditionsRead(const Json& conditions) {
  if (!conditions.is_array()) return conditions;
  Json kept = Json::array();
  for (const Json& condition : conditions) {
    if (reconcile::ReadsCondition(condition))
      kept.push_back(Only(condition, {"type", "status", "reason", "message"}));
  }
  return kept;
}

// Images, resources, volumes and the times of conditions are most of a status that a kubelet wrote.
Json TrimPodStatus(const Json& status) {
  Json kept = Only(status, {"phase", "reason", "message"});
  if (!kept.is_object()) return kept;
  for (const auto& [name, value] : status.items()) {
    if (name == "conditions") kept[name] = ConditionsRead(value);
    if (name == "initContainerStatuses" || name == "containerStatuses")
      kept[name] = EachOnly(value, {"name", "state"});
  }
  return kept;
}

}  // namespace

Json TrimJob(const Json& job) {
  return Trimmed(job, [](const std::string&, const Json& value) { return value; });
}

Json TrimPod(const Json& pod) {
  return Trimmed(pod, [](const std::string& name, const Json& value) {
    if (name == "spec") return Only(value, kPodSpecRead);
    return name == "status" ? TrimPodStatus(value) : value;
  });
}

Json TrimService(const Json& service) {
  return Trimmed(service, [](const std::string& name, const Json& value) {
    return name == "spec" || name == "status" ? Json() : value;
  });
}

}  // namespace ringmaster::manager

#include "operator/reconcile/gang_api.h"

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;

// Volcano's scheduler and controllers read the first, some of its device plugins the second.
constexpr char kVolcanoGroup[] = "scheduling.k8s.io/group-name";
constexpr char kVolcanoOwnGroup[] = "scheduling.volcano.sh/group-name";
constexpr char kCoschedulingLabel[] = "scheduling.x-k8s.io/pod-group";

}  // namespace

Json PodGroupSpec(const GangApi& api, int members, const std::string& queue,
                  const std::string& priority_class) {
  Json spec = Json::object();
  if (api.scheduler == GangScheduler::kNative) {
    spec["schedulingPolicy"] = {{"gang", {{"minCount", members}}}};
  } else {
    spec["minMember"] = members;
  }
  const bool prioritized = api.scheduler != GangScheduler::kCoscheduling;
  if (prioritized && !priority_class.empty()) spec["priorityClassName"] = priority_class;
  if (api.scheduler == GangScheduler::kVolcano && !queue.empty()) spec["queue"] = queue;
  return spec;
}

int MembersOf(const GangApi& api, const Json& group) {
  const auto members = api.scheduler == GangScheduler::kNative
                           ? kube::FindInt(group, {"spec", "schedulingPolicy", "gang", "minCount"})
                           : kube::FindInt(group, {"spec", "minMember"});
  return static_cast<int>(members.value_or(0));
}

void JoinGroup(const GangApi& api, const std::string& group, const std::string& scheduler,
               Json& pod) {
  switch (api.scheduler) {
    case GangScheduler::kNative:
      pod["spec"]["schedulingGroup"] = {{"podGroupName", group}};
      break;
    case GangScheduler::kVolcano:
      kube::SetAnnotation(pod, kVolcanoGroup, group);
      kube::SetAnnotation(pod, kVolcanoOwnGroup, group);
      break;
    case GangScheduler::kCoscheduling:
      kube::SetLabel(pod, kCoschedulingLabel, group);
      break;
  }
  if (!kube::FindString(pod, {"spec", "schedulerName"}).empty()) return;
  const std::string name = scheduler.empty() ? std::string(api.scheduler_name) : scheduler;
  if (!name.empty()) pod["spec"]["schedulerName"] = name;
}

std::string GroupNamedIn(const Json& pod) {
  std::string name = kube::FindString(pod, {"spec", "schedulingGroup", "podGroupName"});
  for (const char* annotation : {kVolcanoGroup, kVolcanoOwnGroup}) {
    if (name.empty()) name = kube::Annotation(pod, annotation).value_or("");
  }
  return name.empty() ? kube::Label(pod, kCoschedulingLabel).value_or("") : name;
}

std::string WhyGroupWaits(const Json& group) {
  const Json* conditions = kube::Find(group, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return "";
  std::string words;
  for (const Json& condition : *conditions) {
    const std::string type = kube::FindString(condition, {"type"});
    const bool holds = kube::FindString(condition, {"status"}) == "True";
    // Kubernetes 1.36; 1.37; Volcano.
    if ((type == "PodGroupScheduled" && !holds) ||
        (type == "PodGroupInitiallyScheduled" && !holds) || (type == "Unschedulable" && holds)) {
      words = kube::FindString(condition, {"message"});
    }
  }
  return words;
}

}  // namespace ringmaster::reconcile

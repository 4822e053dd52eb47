// The ways in which a cluster starts a set of pods together or not at all: each a pod group, an
// object that names how many pods must find a place at once, and pods that name the group.
#ifndef RINGMASTER_OPERATOR_RECONCILE_GANG_API_H_
#define RINGMASTER_OPERATOR_RECONCILE_GANG_API_H_

#include <array>
#include <string>
#include <string_view>

#include "operator/kube/types.h"

namespace ringmaster::reconcile {

enum class GangScheduler {
  kNative,        // Kubernetes' own scheduler, feature GangScheduling
  kVolcano,       // volcano.sh
  kCoscheduling,  // the plugin of kubernetes-sigs/scheduler-plugins
};

struct GangApi {
  GangScheduler scheduler;
  std::string_view name;  // as settings name it
  kube::ResourceType type;
  // Whether the number of pods in a group may be changed; where not, groups are immutable.
  bool resizable = true;
  // The scheduler that pods of a group must name; empty: the default one.
  std::string_view scheduler_name;
};

// In the order of preference. What comes with Kubernetes is first because it harms nobody: pods of
// its groups are placed by the scheduler that every cluster has, while those of the other two wait
// for ever where definitions were left behind by a scheduler that is gone.
inline constexpr std::array kGangApis = {
    GangApi{GangScheduler::kNative,
            "native",
            {"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup"},
            true,
            ""},
    GangApi{GangScheduler::kNative,
            "native",
            {"scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"},
            false,
            ""},
    GangApi{GangScheduler::kVolcano,
            "volcano",
            {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"},
            true,
            "volcano"},
    GangApi{GangScheduler::kCoscheduling,
            "coscheduling",
            {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"},
            true,
            "scheduler-plugins-scheduler"},
};

// The spec of a group of which `members` pods start together. A queue, and the class of the pods'
// priority, where the API has a place for them; empty for none.
kube::Json PodGroupSpec(const GangApi& api, int members, const std::string& queue,
                        const std::string& priority_class);

// How many pods the group starts together; 0 where it does not say.
int MembersOf(const GangApi& api, const kube::Json& group);

// Makes the pod one of the group. A scheduler that its template names stays; else it gets
// `scheduler`, or where that is empty the API's own.
void JoinGroup(const GangApi& api, const std::string& group, const std::string& scheduler,
               kube::Json& pod);

// The group that a pod, or a template of pods, names in any of these ways; empty for none.
std::string GroupNamedIn(const kube::Json& pod);

// Why the group waits, in its scheduler's words; empty when it does not, or says nothing.
std::string WhyGroupWaits(const kube::Json& group);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_GANG_API_H_

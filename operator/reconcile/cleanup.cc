#include "operator/reconcile/gang.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/policies.h"

namespace ringmaster::reconcile {

void ApplyCleanup(Pass& pass) {
  const v1::CleanPodPolicy policy = pass.spec.clean_pod_policy;
  for (const PodFacts& pod : pass.pods) {
    const bool goes = policy == v1::CleanPodPolicy::kAll || pass.Outdated(pod) ||
                      (policy != v1::CleanPodPolicy::kNone && (!pod.Terminal() || pod.others_run));
    if (goes) DeleteOnce(pass, pod);
  }
  // Pods that stay to be read must not go on working for a job that is over.
  if (policy == v1::CleanPodPolicy::kNone) pass.TellAll(StopCommand{"the job has ended"});
  if (policy == v1::CleanPodPolicy::kNone) return;
  DeleteServices(pass);
  DeletePodGroups(pass);
}

}  // namespace ringmaster::reconcile

#include "operator/reconcile/ownership.h"

#include "operator/kube/object.h"

namespace ringmaster::reconcile {

void DeleteOnce(Pass& pass, const PodFacts& pod) {
  if (!pod.deleting) pass.Add(DeletePod{.name = pod.name, .uid = pod.uid});
}

void DeleteOutdatedPods(Pass& pass) {
  for (const PodFacts& pod : pass.pods) {
    if (pass.Outdated(pod)) DeleteOnce(pass, pod);
  }
}

void DeleteServices(Pass& pass) {
  for (const kube::ObjectPtr& service : pass.in.services) {
    if (kube::IsDeleting(*service)) continue;
    pass.Add(DeleteService{.name = kube::Name(*service), .uid = kube::Uid(*service)});
  }
}

}  // namespace ringmaster::reconcile

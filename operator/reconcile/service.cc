#include <algorithm>

#include <fmt/format.h>

#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/worker_pod.h"

namespace ringmaster::reconcile {
namespace {

// Headless: names for the pods, no virtual address. Addresses are published before the pods are
// ready because the programs look for one another in order to become so.
kube::Json BuildService(const Pass& pass) {
  kube::Json service = kube::NewObject(kube::kService, {pass.ns, pass.name});
  service["metadata"]["labels"] = {{contract::kLabelJob, pass.name},
                                   {contract::kLabelManagedBy, kManagedBy}};
  kube::AddOwnerReference(service, OwnerReferenceOf(pass));
  service["spec"] = {{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector", {{contract::kLabelJob, pass.name}}}};
  return service;
}

}  // namespace

void ApplyService(Pass& pass) {
  if (pass.Native()) return;
  const bool exists = std::any_of(
      pass.in.services.begin(), pass.in.services.end(),
      [&](const kube::ObjectPtr& service) { return kube::Name(*service) == pass.name; });
  // A deleting one keeps its name until it is gone; its going brings the next pass.
  if (!exists && pass.MayCreate()) {
    pass.Add(CreateService{BuildService(pass)});
    pass.TellCreated(kReasonServiceCreated,
                     fmt::format("service {}, which gives the pods names", pass.name));
  }
}

}  // namespace ringmaster::reconcile

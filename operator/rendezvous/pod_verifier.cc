#include "operator/rendezvous/pod_verifier.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "operator/kube/object.h"

namespace ringmaster::rendezvous {

absl::Status ObjectPodVerifier::Verify(const WorkerIdentity& worker, bool leaving) {
  const kube::ObjectKey key{worker.job.ns, worker.pod};
  const kube::ObjectPtr pod = lookup_(key);
  if (pod == nullptr) return absl::NotFoundError(fmt::format("no pod {}", key.ToString()));
  if (kube::Uid(*pod) != worker.pod_uid) {
    return absl::PermissionDeniedError(fmt::format(
        "pod {} has the UID {} now, not {}", key.ToString(), kube::Uid(*pod), worker.pod_uid));
  }
  if (kube::Label(*pod, contract::kLabelJob).value_or("") != worker.job.name) {
    return absl::PermissionDeniedError(
        fmt::format("pod {} does not belong to job {}", key.ToString(), worker.job.ToString()));
  }
  if (kube::IsDeleting(*pod) && !leaving)
    return absl::FailedPreconditionError(fmt::format("pod {} is terminating", key.ToString()));
  const std::string phase = kube::FindString(*pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed")
    return absl::FailedPreconditionError(fmt::format("pod {} has ended", key.ToString()));
  return absl::OkStatus();
}

}  // namespace ringmaster::rendezvous

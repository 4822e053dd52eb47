// Whether the pod that says Hello is one that may join: the fence against zombies. A pod's name
// says nothing, since a replacement may carry it; its UID is given once and never again. That the
// caller is that pod is the token's to prove (registry.h).
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_POD_VERIFIER_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_POD_VERIFIER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "operator/kube/types.h"

namespace ringmaster::rendezvous {

// Who a worker says that it is.
struct WorkerIdentity {
  kube::ObjectKey job;
  std::string pod;
  std::string pod_uid;
};

class PodVerifier {
 public:
  virtual ~PodVerifier() = default;

  // OK when the pod is there with this UID, belongs to the job and is neither terminating nor over;
  // one that is `leaving`, and comes to say its last, may be terminating.
  // kNotFound when no such pod is known, which may only be too early: the worker dials again.
  // Any other error is final for this pod: kPermissionDenied when it is not the job's or another
  // pod has its name now, kFailedPrecondition when it is on its way out. kUnavailable when it
  // cannot be told now. Called from many threads; should answer from memory.
  virtual absl::Status Verify(const WorkerIdentity& worker, bool leaving) = 0;
};

// Verifies against Pod objects, such as an informer's copy:
//
//   ObjectPodVerifier verifier([&](const kube::ObjectKey& key) { return pods.Get(key); });
class ObjectPodVerifier : public PodVerifier {
 public:
  // Null when there is no such pod. Thread-safe.
  using Lookup = std::function<kube::ObjectPtr(const kube::ObjectKey& pod)>;

  explicit ObjectPodVerifier(Lookup lookup) : lookup_(std::move(lookup)) {}
  absl::Status Verify(const WorkerIdentity& worker, bool leaving) override;

 private:
  Lookup lookup_;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_POD_VERIFIER_H_

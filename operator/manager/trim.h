// What the caches of a cluster's operator leave out of the objects: everything that neither
// reconcile nor the rendezvous reads. A field that one of them begins to read must be let in here;
// trim_test.cc compares what they see of whole and of trimmed objects.
//
// Pure; thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_TRIM_H_
#define RINGMASTER_OPERATOR_MANAGER_TRIM_H_

#include <array>

#include "operator/kube/types.h"

namespace ringmaster::manager {

// All of it but who wrote which field, and kubectl's copy of the manifest.
kube::Json TrimJob(const kube::Json& job);
// Its identity and its state, and of spec no more than this.
inline constexpr std::array<const char*, 2> kPodSpecRead = {"nodeName", "schedulingGroup"};
kube::Json TrimPod(const kube::Json& pod);
// Its identity.
kube::Json TrimService(const kube::Json& service);

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_TRIM_H_

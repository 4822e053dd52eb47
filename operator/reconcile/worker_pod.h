// The pod of one worker, from the manifest's template or from nothing.
#ifndef RINGMASTER_OPERATOR_RECONCILE_WORKER_POD_H_
#define RINGMASTER_OPERATOR_RECONCILE_WORKER_POD_H_

#include "operator/kube/types.h"
#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

inline constexpr char kManagedBy[] = "ringmaster";
inline constexpr char kWorkerContainer[] = "worker";

// What the container of a pod is called in which the launcher runs: the first of the template. In
// the pod itself, others may have been put before it.
std::string WorkerContainerName(const training::v1alpha1::TrainingJobSpec& spec);
inline constexpr char kCheckpointVolume[] = "ringmaster-checkpoints";
inline constexpr char kCheckpointMount[] = "/ringmaster/checkpoints";

// The pod of this index and incarnation. The template is passed on whole; what is added to it:
// name, labels, owner, its pod group, restartPolicy Never (replacing a worker is the operator's,
// under a new name), and in the first container the launcher before the command, the environment of
// common/contract.h, the checkpoint volume, and what worker_setup.h adds on a cluster. Names of the
// contract win over the template's.
kube::Json BuildWorkerPod(const Pass& pass, int index, int incarnation);

// A controller reference to the pass's job.
kube::Json OwnerReferenceOf(const Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_WORKER_POD_H_

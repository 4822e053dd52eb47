// The kernels that a job's bits come from. What a kernel computes depends on its library, the
// instruction set, the number of threads; a trainer says a digest of all that when it is ready. The
// first round's is the job's from then on.
#ifndef RINGMASTER_OPERATOR_RECONCILE_KERNELS_H_
#define RINGMASTER_OPERATOR_RECONCILE_KERNELS_H_

#include "operator/reconcile/cause.h"
#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Whether the worker's kernels differ from the job's and spec.sameBits does not let it in. It never
// enters a round: its pod is replaced, which may come to lie on another node.
bool RefusedForKernels(const Pass& pass, const Slot& slot);

// Why, as of a lost worker: cause Hardware, with both digests.
Verdict KernelsVerdict(const Pass& pass, const Slot& slot);

// A round begins: the first fixes the job's kernels. All slots are ready.
void FixKernels(Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_KERNELS_H_

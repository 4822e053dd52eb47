// Whether a checkpoint is still to come of what a worker has said, and what training begins at
// without one.
#ifndef RINGMASTER_OPERATOR_RECONCILE_CHECKPOINTS_H_
#define RINGMASTER_OPERATOR_RECONCILE_CHECKPOINTS_H_

#include <string>

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Whether this worker has reported its shard of a checkpoint of the round in force that is not
// committed yet, and those members who have not reported theirs still may.
bool AwaitsShardsOfOthers(const Pass& pass, const WorkerView& view);

// What training begins at as long as the job has no checkpoint, for a sentence.
std::string FirstStep(const Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_CHECKPOINTS_H_

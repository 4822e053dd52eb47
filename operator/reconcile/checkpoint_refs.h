// A checkpoint of the status as workers are told of it.
#ifndef RINGMASTER_OPERATOR_RECONCILE_CHECKPOINT_REFS_H_
#define RINGMASTER_OPERATOR_RECONCILE_CHECKPOINT_REFS_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

CheckpointRef ToRef(const v1::CheckpointStatus& checkpoint);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_CHECKPOINT_REFS_H_

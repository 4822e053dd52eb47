// Workers that were asked to leave by somebody else than the operator: a node that is drained, a
// pod that is deleted. Their trainers agree on a step for a checkpoint among themselves
// (runtime/train); the operator says so, and does not begin the next round before it is written.
#ifndef RINGMASTER_OPERATOR_RECONCILE_DRAIN_H_
#define RINGMASTER_OPERATOR_RECONCILE_DRAIN_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Whether a member of the round in force, its pod wanted still or not, may yet take part in such a
// checkpoint: it is there, was asked less than Settings::drain_timeout ago, and has not left. The
// pass then wakes when that time is over.
bool MembersStillDrain(Pass& pass);

// The same, or, where this operator is new, one may that has told only another that it was asked:
// its pod is terminating, and the time for dialing in again is not over.
bool MembersMayStillDrain(Pass& pass);

// Takes back condition Draining where it speaks of such workers (and not of a suspended job).
void EndDraining(v1::TrainingJobStatus& status);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_DRAIN_H_

// Whether training is over, as the members of the round say.
#ifndef RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_
#define RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Whether any member of the round in force has said that training is over, or the result is stored
// already. What a native trainer says then is the same on every rank.
bool TrainingIsOver(const Pass& pass);

// Whether this worker's word that training is over may still be needed for the result: others, who
// must be through too, have not said so yet, and still may.
bool AwaitsResult(const Pass& pass, const WorkerView& view);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_

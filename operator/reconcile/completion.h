// Whether training is over, as the members of the round say.
#ifndef RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_
#define RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Whether any member of the round in force has said that training is over, or the result is stored
// already. What a native trainer says then is the same on every rank.
bool TrainingIsOver(const Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_COMPLETION_H_

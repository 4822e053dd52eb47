// Changing the number of workers of a round that is in good health.
#ifndef RINGMASTER_OPERATOR_RECONCILE_SCALING_H_
#define RINGMASTER_OPERATOR_RECONCILE_SCALING_H_

#include <string>

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// A new round begins from the newest checkpoint, so before a voluntary change the workers are asked
// for one. True when it exists, or cannot be had in Settings::drain_timeout, or there is no
// training to lose; until then condition Resizing is true, with this reason and message.
bool ReadyToResize(Pass& pass, const char* reason, const std::string& message);

// Whether members of the round in force are no longer wanted and have not been let go yet: the
// round stays until they are.
bool HasSurplusMembers(const Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_SCALING_H_

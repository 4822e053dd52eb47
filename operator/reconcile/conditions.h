// Conditions of a status, as Kubernetes keeps them: one per type, and a transition time that moves
// only when the status word does.
#ifndef RINGMASTER_OPERATOR_RECONCILE_CONDITIONS_H_
#define RINGMASTER_OPERATOR_RECONCILE_CONDITIONS_H_

#include <string>
#include <string_view>

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

const v1::Condition* FindCondition(const v1::TrainingJobStatus& status, std::string_view type);
bool IsTrue(const v1::TrainingJobStatus& status, std::string_view type);

// Sets the condition, with the pass's time and generation. Returns whether its status word changed
// (a new condition counts).
bool SetCondition(Pass& pass, std::string_view type, bool value, std::string_view reason,
                  const std::string& message);
void RemoveCondition(v1::TrainingJobStatus& status, std::string_view type);

// Whether the job has ended.
bool IsFinished(const v1::TrainingJobStatus& status);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_CONDITIONS_H_

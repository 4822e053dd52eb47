// How many incidents of each cause are forgiven, counted over a sliding window from the incidents
// that the status remembers. An incident is the loss of a round, however many pods it took.
#ifndef RINGMASTER_OPERATOR_RECONCILE_BUDGET_H_
#define RINGMASTER_OPERATOR_RECONCILE_BUDGET_H_

#include <optional>
#include <vector>

#include "common/clock.h"
#include "operator/reconcile/cause.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::reconcile {

// What spec.restart forgives; nothing for Preemption, which costs no budget.
std::optional<int> BudgetOf(const training::v1alpha1::Restart& restart, Cause cause);

// The name of that field, for messages: "outOfMemory".
std::string_view BudgetField(Cause cause);

// Incidents of this cause that happened within the window before `now`.
int CountWithin(const std::vector<training::v1alpha1::Incident>& recent, Cause cause,
                Duration window, Time now);

// Forgets incidents that no window can count any more. The latest few stay, for people and for
// telling the consequences of the last one from a new one. Never more than 256 stay.
void Prune(std::vector<training::v1alpha1::Incident>& recent, Duration window, Time now);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_BUDGET_H_

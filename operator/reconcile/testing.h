// Jobs in a known state, and what a decision wants in words: for the policies' tests.
#ifndef RINGMASTER_OPERATOR_RECONCILE_TESTING_H_
#define RINGMASTER_OPERATOR_RECONCILE_TESTING_H_

#include <string>
#include <vector>

#include "operator/reconcile/decision.h"
#include "operator/reconcile/observed.h"

namespace ringmaster::reconcile::testing {

namespace v1 = training::v1alpha1;

// A job `digits` of the native trainer that has just been created; 2026-01-01T00:00:00Z.
Observed Created(int workers);

// The same a minute later, in round 1: pods `digits-<index>-0` run, their workers are connected,
// ready and members.
Observed Training(int workers);

// The pod of an index in `observed`, to be changed. Its status is set by the functions below.
kube::Json& Pod(Observed& observed, int index);
void SetPhase(Observed& observed, int index, const std::string& phase);
// Failed, its container terminated.
void Exit(Observed& observed, int index, int code, const std::string& reason = "Error");
void RemovePod(Observed& observed, int index);

// The worker of an index.
WorkerView& View(Observed& observed, int index);

// The observation after the decision's status was stored, its deletions done and its pods created
// (Pending). Time and workers stay.
Observed After(Observed observed, const Decision& decision);

// Names, in order.
std::vector<std::string> CreatedPods(const Decision& decision);
std::vector<std::string> DeletedPods(const Decision& decision);
// Reasons of events, in order.
std::vector<std::string> Events(const Decision& decision);
// "True RoundStarted"; "" when there is no such condition.
std::string ConditionOf(const Decision& decision, const std::string& type);
std::string MessageOf(const Decision& decision, const std::string& type);
// How many commands of a kind are sent.
template <typename Command>
int CountCommands(const Decision& decision) {
  int count = 0;
  for (const Action& action : decision.actions) {
    const auto* send = std::get_if<SendCommand>(&action);
    count += send != nullptr && std::holds_alternative<Command>(send->command);
  }
  return count;
}
// How long until the next look; nothing for Done.
std::optional<Duration> Wait(const Decision& decision);

}  // namespace ringmaster::reconcile::testing

#endif  // RINGMASTER_OPERATOR_RECONCILE_TESTING_H_

#include "operator/reconcile/conditions.h"

#include <algorithm>

#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

auto Position(auto& conditions, std::string_view type) {
  return std::find_if(conditions.begin(), conditions.end(),
                      [&](const v1::Condition& condition) { return condition.type == type; });
}

}  // namespace

const v1::Condition* FindCondition(const v1::TrainingJobStatus& status, std::string_view type) {
  const auto found = Position(status.conditions, type);
  return found == status.conditions.end() ? nullptr : &*found;
}

bool IsTrue(const v1::TrainingJobStatus& status, std::string_view type) {
  const v1::Condition* condition = FindCondition(status, type);
  return condition != nullptr && condition->status == "True";
}

bool SetCondition(Pass& pass, std::string_view type, bool value, std::string_view reason,
                  const std::string& message) {
  auto found = Position(pass.status.conditions, type);
  if (found == pass.status.conditions.end()) {
    found = pass.status.conditions.insert(found, v1::Condition{.type = std::string(type)});
  }
  const char* word = value ? "True" : "False";
  const bool changed = found->status != word;
  if (changed) found->last_transition_time = pass.now;
  found->status = word;
  found->reason = std::string(reason);
  found->message = message;
  found->observed_generation = pass.generation;
  return changed;
}

void RemoveCondition(v1::TrainingJobStatus& status, std::string_view type) {
  const auto found = Position(status.conditions, type);
  if (found != status.conditions.end()) status.conditions.erase(found);
}

bool IsFinished(const v1::TrainingJobStatus& status) {
  return IsTrue(status, kConditionSucceeded) || IsTrue(status, kConditionFailed);
}

}  // namespace ringmaster::reconcile

#include <algorithm>

#include <fmt/format.h>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// When the job began to wait for a round: at its start, when the latest worker was lost, or when
// the round in force ended without a loss.
Time WaitBegan(const Pass& pass) {
  Time began = pass.status.start_time.value_or(pass.now);
  if (const v1::Condition* training = FindCondition(pass.status, kConditionTraining))
    began = std::max(began, training->last_transition_time.value_or(began));
  if (pass.status.restarts && !pass.status.restarts->recent.empty()) {
    began = std::max(began, pass.status.restarts->recent.back().time.value_or(began));
  }
  return began;
}

std::string WhyWaiting(const Pass& pass) {
  const v1::Condition* pods = FindCondition(pass.status, kConditionPodsReady);
  if (pods != nullptr && pods->status != "True") return pods->message;
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  return training == nullptr ? "" : training->message;
}

}  // namespace

void ApplyActiveDeadline(Pass& pass) {
  if (!pass.spec.active_deadline_seconds || !pass.status.start_time) return;
  const Time ends =
      *pass.status.start_time + std::chrono::seconds(*pass.spec.active_deadline_seconds);
  if (pass.now < ends) {
    pass.WakeAt(ends);
    return;
  }
  pass.Fail(kReasonDeadlineExceeded,
            fmt::format("The job has run for {}, and spec.activeDeadlineSeconds allows {}.",
                        FormatDuration(pass.now - *pass.status.start_time),
                        *pass.spec.active_deadline_seconds));
}

void ApplyStartDeadline(Pass& pass) {
  if (!pass.spec.start_deadline_seconds || pass.status.result) return;
  if (IsTrue(pass.status, kConditionTraining)) return;
  const Time began = WaitBegan(pass);
  const Time ends = began + std::chrono::seconds(*pass.spec.start_deadline_seconds);
  if (pass.now < ends) {
    pass.WakeAt(ends);
    return;
  }
  pass.Fail(kReasonStartDeadlineExceeded,
            fmt::format("The workers were not all running and joined after {}, and "
                        "spec.startDeadlineSeconds allows {}. {}",
                        FormatDuration(pass.now - began), *pass.spec.start_deadline_seconds,
                        WhyWaiting(pass)));
}

}  // namespace ringmaster::reconcile

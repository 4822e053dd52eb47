#include <algorithm>

#include <fmt/format.h>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// A worker that has joined, or is in the round in force and not known to be lost: after a restart
// of the operator its members are counted before they have dialled in.
bool Ready(const Pass& pass, const Slot& slot) {
  if (slot.pod == nullptr || !slot.pod->Running()) return false;
  if (slot.view != nullptr) return slot.view->connected && slot.view->ready.has_value();
  return slot.member != nullptr && IsTrue(pass.status, kConditionTraining);
}

// Of a job that was over before this pass: how many it had and how they ended, also when their pods
// are cleaned up and the spec is changed.
void KeepTheOutcome(const Pass& pass, v1::WorkerCounts& counts) {
  const auto& before = pass.in.job.status;
  if (!before || !before->completion_time || !before->workers) return;
  counts.desired = before->workers->desired;
  counts.failed = std::max(counts.failed, before->workers->failed);
  counts.succeeded = std::max(counts.succeeded, before->workers->succeeded);
}

v1::WorkerCounts CountWorkers(const Pass& pass) {
  v1::WorkerCounts counts{.desired = static_cast<std::int32_t>(pass.slots.size())};
  for (const PodFacts& pod : pass.pods) {
    if (!pod.Terminal() && !pod.deleting && !pass.Outdated(pod)) ++counts.active;
    if (pod.phase == PodPhase::kFailed) ++counts.failed;
  }
  for (const Slot& slot : pass.slots) {
    if (Ready(pass, slot)) ++counts.ready;
    if (slot.pod != nullptr && slot.pod->phase == PodPhase::kSucceeded) ++counts.succeeded;
  }
  KeepTheOutcome(pass, counts);
  counts.summary = fmt::format("{}/{}", counts.ready, counts.desired);
  return counts;
}

bool LostSinceLastRound(const v1::TrainingJobStatus& status) {
  return status.restarts && !status.restarts->recent.empty() && !status.members.empty() &&
         status.restarts->recent.back().round == status.round;
}

const char* StateOf(const v1::TrainingJobStatus& status) {
  if (IsTrue(status, kConditionSucceeded)) return "Succeeded";
  if (IsTrue(status, kConditionFailed)) return "Failed";
  if (IsTrue(status, kConditionSuspended)) return "Suspended";
  if (IsTrue(status, kConditionTraining) || status.result) return "Running";
  if (LostSinceLastRound(status)) return "Restarting";
  return IsTrue(status, kConditionPodsReady) ? "Starting" : "Pending";
}

// As of the last moment that the status itself tells of, so that time alone changes nothing in it
// and a pass that finds nothing new writes nothing.
double GoodputOf(const v1::TrainingJobStatus& status) {
  if (!status.progress) return 0;  // nothing useful yet
  const std::optional<Time> until =
      status.completion_time ? status.completion_time : status.progress->updated_at;
  if (!until || !status.start_time || *until <= *status.start_time) return status.goodput;
  const v1::LostSeconds lost = status.lost_seconds.value_or(v1::LostSeconds{});
  const double all = Seconds(*until - *status.start_time);
  const double wasted = lost.detect + lost.schedule + lost.rendezvous + lost.restore + lost.replay;
  return std::clamp(1.0 - wasted / all, 0.0, 1.0);
}

}  // namespace

void ApplySummary(Pass& pass) {
  pass.status.observed_generation = pass.generation;
  pass.status.selector = Selector(pass.name);
  pass.status.state = StateOf(pass.status);
  pass.status.workers = CountWorkers(pass);
  pass.status.goodput = GoodputOf(pass.status);
}

}  // namespace ringmaster::reconcile

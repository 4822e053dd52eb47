#include "operator/manager/status_pace.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>

#include "operator/reconcile/reasons.h"

namespace ringmaster::manager {
namespace {

using training::v1alpha1::TrainingJobStatus;

// Counts take a fifth of one connection's time at most: a server that is slow to take them is busy
// with something that matters more.
constexpr int kShareOfTime = 5;
// But so many in an interval at least: when all jobs start at once, a call takes long because it
// stands in a queue.
constexpr int kLeastPerInterval = 4;
constexpr int kMostIntervals = 60;
// In a rush they wait for its end, but not for ever.
constexpr int kIntervalsInRush = 30;
// A turn further ahead than this is not given yet: by then calls may be quicker.
constexpr int kIntervalsAhead = 10;

// While nothing keeps pods from starting.
bool TellsOfTheStart(const training::v1alpha1::Condition& condition) {
  return condition.type == reconcile::kConditionPodsReady &&
         (condition.reason == reconcile::kReasonPodsStarting ||
          condition.reason == reconcile::kReasonPodsRunning);
}

bool IsStart(const std::string& state) {
  return state == "Pending" || state == "Starting";
}

void TakeWords(const TrainingJobStatus& from, TrainingJobStatus& to) {
  to.workers = from.workers;
  if (IsStart(from.state) && IsStart(to.state)) to.state = from.state;
  to.observed_generation = from.observed_generation;
  if (from.conditions.size() != to.conditions.size()) return;
  for (std::size_t i = 0; i < to.conditions.size(); ++i) {
    if (TellsOfTheStart(from.conditions[i]) && TellsOfTheStart(to.conditions[i]))
      to.conditions[i] = from.conditions[i];
    to.conditions[i].message = from.conditions[i].message;
    to.conditions[i].observed_generation = from.conditions[i].observed_generation;
  }
}

// Workers can be told of what is stored already.
bool OnlyTells(const reconcile::Decision& decision) {
  return std::all_of(decision.actions.begin(), decision.actions.end(),
                     [](const reconcile::Action& action) {
                       return std::holds_alternative<reconcile::SendCommand>(action);
                     });
}

bool MayWait(const reconcile::Decision& decision) {
  // The outcome's counts are kept from what was stored: what is not stored now may be gone later.
  return OnlyTells(decision) && !decision.status->completion_time &&
         (std::holds_alternative<controller::Done>(decision.result) ||
          std::holds_alternative<controller::RequeueAfter>(decision.result));
}

}  // namespace

bool MayBeToldLater(const TrainingJobStatus& before, const TrainingJobStatus& after) {
  TrainingJobStatus compared = after;
  TakeWords(before, compared);
  return compared == before;
}

Duration StatusPace::WaitFor(const kube::ObjectKey& job,
                             const std::optional<TrainingJobStatus>& before,
                             const reconcile::Decision& decision, bool stored) {
  if (interval_ <= Duration(0) || !decision.status) return {};
  const SteadyTime now = clock_.SteadyNow();
  const std::lock_guard lock(mutex_);
  if (stored && decision.status == before) {
    // What waited has become untrue again.
    if (const auto known = jobs_.find(job); known != jobs_.end()) known->second.waits.reset();
    return {};
  }
  const auto [known, first] = jobs_.try_emplace(job);
  Job& mine = known->second;
  if (!first && before && MayWait(decision) && MayBeToldLater(*before, *decision.status)) {
    if (const Duration wait = WaitOf(mine, now); wait > Duration(0)) return wait;
  }
  mine = {.written = now, .waits = std::nullopt, .turn = std::nullopt};
  return {};
}

Duration StatusPace::WaitOf(Job& job, SteadyTime now) {
  const bool begins = !job.waits;
  if (begins) job.waits = now;
  const auto waited = std::chrono::duration_cast<Duration>(now - *job.waits);
  const Duration left = kIntervalsInRush * interval_ - waited;
  const bool yields = left > Duration(0) && rush_.IsOn();
  // Turns that were not used in time would come to all jobs at once.
  if ((begins || yields) && job.turn && *job.turn <= now) job.turn.reset();
  // Looking again costs a pass: the longer it has waited, the less often.
  if (yields) return std::min(std::max(interval_, waited), left);
  if (!job.turn) {
    const SteadyTime last = *job.waits + kMostIntervals * interval_;
    const Duration ahead = kIntervalsAhead * interval_;
    if (now + ahead < std::min(free_, last)) return ahead;
    job.turn = free_ < last ? TakeTurn(job.written, now) : last;
  }
  if (now >= *job.turn) return {};
  return std::chrono::duration_cast<Duration>(*job.turn - now) + Duration(1);
}

SteadyTime StatusPace::TakeTurn(SteadyTime written, SteadyTime now) {
  const SteadyTime turn = std::max(free_, written + interval_);
  const Duration apart = std::min(kShareOfTime * last_call_, interval_ / kLeastPerInterval);
  free_ = std::max(turn, now) + apart;
  return turn;
}

bool StatusPace::PodsFirst(const reconcile::Decision& decision) const {
  return interval_ > Duration(0) && reconcile::CreatesPods(decision) && rush_.IsOn();
}

void StatusPace::Took(Duration call) {
  const std::lock_guard lock(mutex_);
  last_call_ = call;
}

void StatusPace::Forget(const kube::ObjectKey& job) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(job);
}

}  // namespace ringmaster::manager

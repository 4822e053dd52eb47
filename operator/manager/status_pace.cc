#include "operator/manager/status_pace.h"

#include <algorithm>
#include <chrono>
#include <variant>

namespace ringmaster::manager {
namespace {

using training::v1alpha1::TrainingJobStatus;

// One job's counts take a twentieth of its time at most: a server that is slow is busy with
// something that matters more.
constexpr int kShareOfTime = 20;
constexpr int kMostIntervals = 10;

void TakeWords(const TrainingJobStatus& from, TrainingJobStatus& to) {
  to.workers = from.workers;
  to.observed_generation = from.observed_generation;
  if (from.conditions.size() != to.conditions.size()) return;
  for (std::size_t i = 0; i < to.conditions.size(); ++i) {
    to.conditions[i].message = from.conditions[i].message;
    to.conditions[i].observed_generation = from.conditions[i].observed_generation;
  }
}

bool MayWait(const reconcile::Decision& decision) {
  // The outcome's counts are kept from what was stored: what is not stored now may be gone later.
  return decision.actions.empty() && !decision.status->completion_time &&
         (std::holds_alternative<controller::Done>(decision.result) ||
          std::holds_alternative<controller::RequeueAfter>(decision.result));
}

}  // namespace

bool SaysTheSame(const TrainingJobStatus& before, const TrainingJobStatus& after) {
  TrainingJobStatus compared = after;
  TakeWords(before, compared);
  return compared == before;
}

Duration StatusPace::WaitFor(const kube::ObjectKey& job,
                             const std::optional<TrainingJobStatus>& before,
                             const reconcile::Decision& decision) {
  if (interval_ <= Duration(0) || !decision.status || decision.status == before) return {};
  const bool may_wait = before && MayWait(decision) && SaysTheSame(*before, *decision.status);
  const SteadyTime now = clock_.SteadyNow();
  const std::lock_guard lock(mutex_);
  const auto written = written_.find(job);
  const Duration interval = Interval();
  if (may_wait && written != written_.end() && now < written->second + interval) {
    return std::chrono::duration_cast<Duration>(written->second + interval - now) + Duration(1);
  }
  written_[job] = now;
  return {};
}

void StatusPace::Took(Duration call) {
  const std::lock_guard lock(mutex_);
  last_call_ = call;
}

Duration StatusPace::Interval() const {
  return std::clamp(last_call_ * kShareOfTime, interval_, interval_ * kMostIntervals);
}

void StatusPace::Forget(const kube::ObjectKey& job) {
  const std::lock_guard lock(mutex_);
  written_.erase(job);
}

}  // namespace ringmaster::manager

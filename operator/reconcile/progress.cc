#include <algorithm>

#include <fmt/format.h>

#include "operator/reconcile/completion.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/evaluation_result.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// The furthest member's report; nothing before the first one of the round in force.
const ProgressReport* Furthest(const Pass& pass) {
  const ProgressReport* best = nullptr;
  for (const v1::Member& member : pass.status.members) {
    const WorkerView* view = pass.ViewOf(member.pod_uid);
    if (view == nullptr || !view->progress || view->progress->round != pass.status.round) continue;
    if (best == nullptr || view->progress->step > best->step) best = &*view->progress;
  }
  return best;
}

std::optional<Time> RoundBegan(const Pass& pass) {
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  if (training == nullptr || training->status != "True") return std::nullopt;
  return training->last_transition_time;
}

// The first report of a round that followed a loss: the time from the round's start to it went into
// loading the checkpoint, and the steps between the checkpoint and the loss are computed again, at
// the pace that the report shows.
void CountRecovery(Pass& pass, const ProgressReport& report, const v1::TrainingProgress& before) {
  const std::optional<Time> began = RoundBegan(pass);
  if (!began || !before.updated_at || *before.updated_at >= *began) return;
  pass.lost().restore += Seconds(std::max(report.time - *began, Duration(0)));
  const std::int64_t again = std::max<std::int64_t>(before.step - report.step, 0);
  pass.lost().replay +=
      static_cast<double>(again) * (report.step_seconds + report.allreduce_seconds);
}

v1::TrainingProgress ToStatus(const Pass& pass, const ProgressReport& report) {
  return {.step = report.step,
          .total_steps = report.total_steps,
          .epoch = report.epoch,
          .loss = report.loss,
          .accuracy = report.accuracy,
          .samples_per_second = report.samples_per_second,
          .last_checkpoint_step =
              pass.status.checkpoints.empty() ? 0 : pass.status.checkpoints.front().step,
          .summary = fmt::format("{}/{}", report.step, report.total_steps),
          .updated_at = report.time,
          .evaluation = ToResult(report.evaluation),
          .skipped_steps =
              report.skipped_steps > 0 ? std::optional(report.skipped_steps) : std::nullopt};
}

// Whether each member that is connected has told of the round in force.
bool AllHaveReported(const Pass& pass) {
  return std::all_of(pass.status.members.begin(), pass.status.members.end(),
                     [&](const v1::Member& member) {
                       const WorkerView* view = pass.ViewOf(member.pod_uid);
                       if (view == nullptr || !view->connected) return true;
                       return view->progress && view->progress->round == pass.status.round;
                     });
}

// Whether the status tells of this already, or of a later step that another is still to say:
// workers say their last again to each new operator, one after another, and it is no newer for
// that. Once all have, an earlier step is one that is computed again.
bool SaidBefore(const Pass& pass, const v1::TrainingProgress& before, v1::TrainingProgress again) {
  again.updated_at = before.updated_at;
  return again == before || (again.step < before.step && !AllHaveReported(pass));
}

}  // namespace

void ApplyProgress(Pass& pass) {
  const ProgressReport* report = Furthest(pass);
  if (report == nullptr) return;
  if (pass.status.progress && pass.status.progress->updated_at) {
    const v1::TrainingProgress& before = *pass.status.progress;
    if (report->time < *before.updated_at) return;
    if (report->time == *before.updated_at && report->step == before.step) return;
    if (SaidBefore(pass, before, ToStatus(pass, *report))) return;
    const Time due = *before.updated_at + pass.in.settings.progress_interval;
    const bool last = report->step >= report->total_steps || TrainingIsOver(pass);
    if (pass.now < due && !last) {
      pass.WakeAt(due);
      return;
    }
    CountRecovery(pass, *report, before);
  }
  pass.status.progress = ToStatus(pass, *report);
}

}  // namespace ringmaster::reconcile

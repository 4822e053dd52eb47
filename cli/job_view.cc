#include "cli/job_view.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/pod_name.h"
#include "operator/kube/object.h"
#include "operator/reconcile/evaluation_result.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"

namespace ringmaster::cli {
namespace {

namespace v1 = training::v1alpha1;
using kube::Json;

// The latest incarnation of each index.
std::map<int, kube::ObjectPtr> LatestPods(const std::vector<kube::ObjectPtr>& pods) {
  std::map<int, kube::ObjectPtr> latest;
  for (const kube::ObjectPtr& pod : pods) {
    kube::ObjectPtr& slot = latest[IndexOf(*pod)];
    if (slot == nullptr || IncarnationOf(*slot) < IncarnationOf(*pod)) slot = pod;
  }
  return latest;
}

const reconcile::WorkerView* FindWorker(const reconcile::WorkersView& workers,
                                        const std::string& uid) {
  const auto found = std::ranges::find(workers.workers, uid, &reconcile::WorkerView::pod_uid);
  return found == workers.workers.end() ? nullptr : &*found;
}

WorkerView ViewOfWorker(int index, const Json& pod, const reconcile::WorkerView* worker) {
  WorkerView view;
  view.index = index;
  const std::string phase = kube::FindString(pod, {"status", "phase"});
  if (phase == "Succeeded") {
    view.state = WorkerState::kDone;
  } else if (phase == "Failed") {
    view.state = WorkerState::kLost;
    view.note = HowItEnded(pod);
  } else if (worker != nullptr && worker->connected && worker->round > 0 && worker->progress) {
    view.state = WorkerState::kRunning;
    view.step_seconds = worker->progress->step_seconds;
  }
  return view;
}

// What the fastest worker reported; status lags behind it by up to a second.
void AddProgress(const v1::TrainingJob& job, const reconcile::WorkersView& workers, JobView& view) {
  std::optional<v1::EvaluationResult> evaluation;
  if (job.status && job.status->progress) {
    const v1::TrainingProgress& progress = *job.status->progress;
    view.step = progress.step;
    view.total_steps = progress.total_steps;
    view.epoch = progress.epoch;
    view.loss = progress.loss;
    view.accuracy = progress.accuracy;
    evaluation = progress.evaluation;
    view.samples_per_second = progress.samples_per_second;
    view.skipped_steps = progress.skipped_steps.value_or(0);
  }
  for (const reconcile::WorkerView& worker : workers.workers) {
    if (worker.ready) view.model = worker.ready->model;
    if (!worker.connected || !worker.progress || worker.progress->step <= view.step) continue;
    const reconcile::ProgressReport& progress = *worker.progress;
    view.step = progress.step;
    view.total_steps = progress.total_steps;
    view.epoch = progress.epoch;
    view.loss = progress.loss;
    if (progress.accuracy) view.accuracy = progress.accuracy;
    if (progress.evaluation) evaluation = reconcile::ToResult(progress.evaluation);
    view.samples_per_second = progress.samples_per_second;
    view.skipped_steps = progress.skipped_steps;
  }
  if (job.spec.trainer) view.measure = MeasureOf(*job.spec.trainer, evaluation);
}

}  // namespace

JobView ViewOf(const std::string& name, const v1::TrainingJob& job,
               const std::vector<kube::ObjectPtr>& pods, const reconcile::WorkersView& workers) {
  JobView view;
  view.name = name;
  view.workers = job.spec.workers.replicas;
  if (job.status) view.state = job.status->state;
  if (job.spec.trainer) {
    view.batch = job.spec.trainer->batch.size;
    view.shards = job.status && job.status->shards ? *job.status->shards
                                                   : job.spec.trainer->batch.shards.value_or(0);
    view.seed = job.spec.trainer->seed;
    view.epochs = job.spec.trainer->epochs.value_or(0);
  }
  AddProgress(job, workers, view);
  for (const auto& [index, pod] : LatestPods(pods)) {
    if (index >= 0 && index < view.workers)
      view.members.push_back(ViewOfWorker(index, *pod, FindWorker(workers, kube::Uid(*pod))));
  }
  return view;
}

std::optional<std::string> MeasureOf(const v1::TrainerConfig& trainer,
                                     const std::optional<v1::EvaluationResult>& evaluation) {
  const bool top5 = v1::MetricOf(trainer.evaluation) == v1::Metric::kTop5;
  const bool has_auroc =
      trainer.data.csv && (trainer.data.csv->labels || trainer.data.csv->classes == 2);
  if (!top5 && !has_auroc && !trainer.data.text) return std::nullopt;
  const v1::EvaluationResult result = evaluation.value_or(v1::EvaluationResult());
  if (top5 && result.top5_accuracy)
    return fmt::format("top-5 {:.1f} %", *result.top5_accuracy * 100);
  if (result.perplexity) return fmt::format("perplexity {:.4g}", *result.perplexity);
  if (result.auroc) return fmt::format("AUROC {:.3f}", *result.auroc);
  return "";
}

std::string HowItEnded(const Json& pod) {
  const Json* statuses = kube::Find(pod, {"status", "containerStatuses"});
  if (statuses == nullptr || !statuses->is_array() || statuses->empty())
    return kube::FindString(pod, {"status", "reason"});
  const auto code = kube::FindInt(statuses->front(), {"state", "terminated", "exitCode"});
  if (!code) return kube::FindString(pod, {"status", "reason"});
  if (*code <= 128) return fmt::format("exit code {}", *code);
  const char* name = ::sigabbrev_np(static_cast<int>(*code - 128));
  return name == nullptr ? fmt::format("exit code {}", *code) : fmt::format("killed (SIG{})", name);
}

Moment MomentOf(const Json& event) {
  const std::string version = kube::ResourceVersion(event);
  std::uint64_t write = 0;
  std::from_chars(version.data(), version.data() + version.size(), write);
  return {kube::FindString(event, {"lastTimestamp"}), write};
}

}  // namespace ringmaster::cli

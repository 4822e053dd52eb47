#include "tests/scenarios/render.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::scenarios {
namespace {

namespace v1 = training::v1alpha1;

std::string RenderConditions(const v1::TrainingJobStatus& status) {
  std::string text;
  for (const v1::Condition& condition : status.conditions) {
    text += fmt::format("  {}={} {}: {}\n", condition.type, condition.status, condition.reason,
                        condition.message);
  }
  return text;
}

std::string RenderMembers(const v1::TrainingJobStatus& status) {
  std::string text;
  for (const v1::Member& member : status.members) {
    text += fmt::format(" {}={}", member.rank, member.pod);
  }
  return text.empty() ? text : fmt::format("members{}\n", text);
}

std::string RenderTraining(const v1::TrainingJobStatus& status) {
  std::string text;
  if (status.progress) {
    text += fmt::format("progress {} loss {} last checkpoint {}\n", status.progress->summary,
                        status.progress->loss, status.progress->last_checkpoint_step);
  }
  for (const v1::CheckpointStatus& checkpoint : status.checkpoints) {
    text += fmt::format("checkpoint {} of round {}, {} files", checkpoint.step, checkpoint.round,
                        checkpoint.world_size);
    if (checkpoint.metric_value) text += fmt::format(", {}", *checkpoint.metric_value);
    text += "\n";
  }
  if (const auto& best = status.best_checkpoint)
    text += fmt::format("best checkpoint {}, {}\n", best->step, best->value);
  if (status.result) {
    text += fmt::format("result {} steps, accuracy {}, {}\n", status.result->steps,
                        status.result->accuracy, status.result->weights_sha256);
    if (status.result->stopped_early)
      text += fmt::format("stopped early: {}\n", *status.result->stopped_early);
  }
  return text;
}

std::string RenderRestarts(const v1::TrainingJobStatus& status) {
  if (!status.restarts) return "";
  std::string text = fmt::format("restarts {}", status.restarts->total);
  for (const auto& [cause, count] : status.restarts->by_cause) {
    text += fmt::format(" {}={}", cause, count);
  }
  text += "\n";
  if (status.lost_seconds) {
    const v1::LostSeconds& lost = *status.lost_seconds;
    text += fmt::format(
        "lost detect {:.1f} schedule {:.1f} rendezvous {:.1f} restore {:.1f} replay {:.1f} s, "
        "goodput {:.2f}\n",
        lost.detect, lost.schedule, lost.rendezvous, lost.restore, lost.replay, status.goodput);
  }
  return text;
}

absl::StatusOr<v1::TrainingJobStatus> StatusOf(const kube::Json& job) {
  const kube::Json* status = kube::Find(job, {"status"});
  if (status == nullptr) return absl::NotFoundError("the job has no status");
  return v1::FromJson<v1::TrainingJobStatus>(*status);
}

std::string Stamp(const char* name, const std::optional<Time>& time) {
  return time ? fmt::format(" {} {}", name, FormatTime(*time)) : "";
}

}  // namespace

std::string RenderStatus(const kube::Json& job) {
  const absl::StatusOr<v1::TrainingJobStatus> read = StatusOf(job);
  if (!read.ok()) return Message(read.status()) + "\n";
  const v1::TrainingJobStatus& status = *read;
  const v1::WorkerCounts workers = status.workers.value_or(v1::WorkerCounts{});
  std::string text =
      fmt::format("{} workers {} round {}", status.state, workers.summary, status.round);
  if (status.shards) text += fmt::format(" shards {}", *status.shards);
  text += Stamp("started", status.start_time) + Stamp("completed", status.completion_time) + "\n";
  text += fmt::format("pods active {} failed {} succeeded {}, generation {}\n", workers.active,
                      workers.failed, workers.succeeded, status.observed_generation);
  return text + RenderConditions(status) + RenderMembers(status) + RenderTraining(status) +
         RenderRestarts(status);
}

std::string RenderPods(const std::vector<kube::ObjectPtr>& pods) {
  std::string text;
  for (const kube::ObjectPtr& pod : pods) {
    text += fmt::format("{} {}{}\n", kube::Name(*pod), kube::FindString(*pod, {"status", "phase"}),
                        kube::IsDeleting(*pod) ? ", deleting" : "");
  }
  return text.empty() ? "no pods\n" : text;
}

std::string BrokenInvariants(const kube::Json& job) {
  const absl::StatusOr<v1::TrainingJobStatus> status = StatusOf(job);
  if (!status.ok()) return "";
  std::vector<std::string> held;
  for (const v1::Condition& condition : status->conditions) {
    const bool exclusive = condition.type == "Training" || condition.type == "Suspended" ||
                           condition.type == "Succeeded" || condition.type == "Failed";
    if (exclusive && condition.status == "True") held.push_back(condition.type);
  }
  if (held.empty()) return "";
  if (held.size() > 1) return fmt::format("BROKEN: both {} and {} hold\n", held[0], held[1]);
  const std::string word = held[0] == "Training" ? "Running" : held[0];
  if (status->state == word) return "";
  return fmt::format("BROKEN: {} holds, and the state is {}\n", held[0], status->state);
}

}  // namespace ringmaster::scenarios

#include "cli/watch.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/text.h"
#include "common/contract.h"
#include "common/env.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/api/defaults.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

namespace v1 = training::v1alpha1;
using kube::Json;
using Steady = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr auto kPlainProgressEvery = std::chrono::seconds(5);

// Routine that would drown what matters; all of it is in operator.log and in `ringmaster get
// --events`. A job's success is told from its condition: the event comes after it, maybe later than
// anybody looks.
const std::set<std::string> kQuietReasons = {"CheckpointCommitted", "Completed",      "PodsCreated",
                                             "PodsDeleted",         "ServiceCreated", "Suspended",
                                             "Suspending"};

const v1::Condition* FindCondition(const v1::TrainingJob& job, const std::string& type) {
  if (!job.status) return nullptr;
  const auto found = std::ranges::find(job.status->conditions, type, &v1::Condition::type);
  return found == job.status->conditions.end() ? nullptr : &*found;
}

bool IsTrue(const v1::TrainingJob& job, const std::string& type) {
  const v1::Condition* condition = FindCondition(job, type);
  return condition != nullptr && condition->status == "True";
}

// The condition alone may still be an earlier run's, which this one resumes.
bool IsSuspended(const v1::TrainingJob& job) {
  return job.spec.suspend && IsTrue(job, "Suspended");
}

bool HasEnded(const v1::TrainingJob& job) {
  return IsTrue(job, "Succeeded") || IsTrue(job, "Failed");
}

std::vector<kube::ObjectPtr> ListAll(kube::Client& client, const kube::ResourceType& type,
                                     const std::string& ns) {
  auto list = client.List(type, ns, {});
  return list.ok() ? std::move(list->items) : std::vector<kube::ObjectPtr>();
}

// As seen from the current directory; as it is where that has gone.
std::string Shown(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path relative = std::filesystem::relative(path, error);
  return error || relative.empty() ? path.string() : relative.string();
}

}  // namespace

JobWatch::JobWatch(local::LocalCluster& cluster, kube::ObjectKey key, const RunDirectory& directory,
                   Screen& screen, bool resumed)
    : cluster_(cluster),
      key_(std::move(key)),
      directory_(directory),
      screen_(screen),
      resumed_(resumed),
      colour_(!env::IsSet("NO_COLOR")) {
  // A resumed job's earlier events have been told.
  for (const kube::ObjectPtr& event : ListAll(cluster_.store(), kube::kEvent, key_.ns)) {
    events_[kube::Name(*event)] = kube::FindInt(*event, {"count"}).value_or(1);
  }
}

bool JobWatch::Refresh() {
  const auto object = cluster_.store().Get(kube::kTrainingJob, key_);
  if (!object.ok()) return absl::IsNotFound(object.status());  // its ttl has passed
  auto job = v1::FromJson<v1::TrainingJob>(*object);
  if (!job.ok()) {
    log::Error("the stored job cannot be read",
               {{"job", key_.ToString()}, {"error", job.status()}});
    return false;
  }
  job_ = *std::move(job);
  api::ApplyDerivedDefaults(job_.spec);
  const auto pods = ListAll(cluster_.store(), kube::kPod, key_.ns);
  view_ = ViewOf(key_.name, job_, pods, cluster_.WorkersOf(key_));
  PrintHeader();
  PrintEvents();
  screen_.Draw(LiveBlock(view_, screen_.width(), colour_));
  PrintPlainProgress();
  return HasEnded(job_) || (IsSuspended(job_) && pods.empty());
}

void JobWatch::Wait() {
  std::this_thread::sleep_for(kLookEvery);
}

void JobWatch::PrintHeader() {
  const bool ended = HasEnded(job_) || IsSuspended(job_);
  // The model's name comes from the first worker that is ready.
  if (header_printed_ || (view_.model.empty() && job_.spec.trainer && !ended)) return;
  header_printed_ = true;
  Say(HeaderLine(view_));
  screen_.Print(
      fmt::format("  {}; logs: {}", resumed_ ? "resumed" : "started", Shown(directory_.logs())));
}

void JobWatch::PrintEvents() {
  if (!header_printed_) return;
  std::vector<std::pair<Moment, std::string>> lines;
  for (const kube::ObjectPtr& event : ListAll(cluster_.store(), kube::kEvent, key_.ns)) {
    const int64_t count = std::max<int64_t>(1, kube::FindInt(*event, {"count"}).value_or(1));
    if (std::exchange(events_[kube::Name(*event)], count) == count) continue;
    if (kQuietReasons.contains(kube::FindString(*event, {"reason"}))) continue;
    lines.emplace_back(MomentOf(*event), kube::FindString(*event, {"message"}));
  }
  std::ranges::sort(lines);
  for (const auto& [moment, message] : lines) Say("  " + message);
}

// On a terminal, broken between words; elsewhere a line is what scripts read.
void JobWatch::Say(const std::string& line) {
  if (!screen_.live()) return screen_.Print(line);
  for (const std::string& part : Wrap(line, screen_.width())) screen_.Print(part);
}

// Without a live view: a line at each evaluation, and every few seconds.
void JobWatch::PrintPlainProgress() {
  if (screen_.live() || view_.step == 0 || !header_printed_) return;
  const auto now = Steady::now();
  if (view_.accuracy == accuracy_told_ && now - progress_told_ < kPlainProgressEvery) return;
  accuracy_told_ = view_.accuracy;
  progress_told_ = now;
  screen_.Print("  " + ProgressLine(view_));
}

int JobWatch::Conclude(bool interrupted) {
  screen_.Clear();
  if (IsTrue(job_, "Succeeded"))
    return ConcludeSuccess(job_.status->result.value_or(v1::TrainingResult{}));
  if (IsTrue(job_, "Failed")) return ConcludeFailure();
  // What the workers saved on their way out is later than what they had last reported.
  const auto& checkpoints = job_.status->checkpoints;
  const int64_t step =
      checkpoints.empty() ? view_.step : std::max(view_.step, checkpoints.front().step);
  screen_.Print(fmt::format("stopped at step {}; {}", step,
                            interrupted ? "run the same command to resume"
                                        : "the manifest says spec.suspend: set it to false and "
                                          "run the same command to go on"));
  return contract::kExitInterrupted;
}

int JobWatch::ConcludeSuccess(const v1::TrainingResult& result) {
  Say("  " + FindCondition(job_, "Succeeded")->message);
  const auto took = std::chrono::duration_cast<Duration>(Steady::now() - started_);
  std::string line = "done in " + FormatDuration(took);
  if (!job_.spec.trainer) {
    screen_.Print(line);
    return contract::kExitOk;
  }
  if (result.accuracy >= 0) line += fmt::format("   accuracy {:.1f} %", result.accuracy * 100);
  const std::string measure =
      MeasureOf(*job_.spec.trainer, result.evaluation).value_or(std::string());
  if (!measure.empty()) line += "   " + measure;
  if (!job_.status->checkpoints.empty() && !job_.spec.checkpoint.volume.is_object()) {
    const int64_t last = job_.status->checkpoints.front().step;
    const auto& best = job_.status->best_checkpoint;
    line += fmt::format(
        "   checkpoint of step {}{} in {}", last,
        best && best->step != last ? fmt::format(" and the best, of step {},", best->step) : "",
        Shown(job_.spec.checkpoint.directory.value_or(cluster_.checkpoint_directory().string())));
  }
  screen_.Print(line);
  screen_.Print(fmt::format("weights sha256:{} steps:{} accuracy:{:.3f}", result.weights_sha256,
                            result.steps, result.accuracy));
  return contract::kExitOk;
}

int JobWatch::ConcludeFailure() {
  const v1::Condition* failed = FindCondition(job_, "Failed");
  screen_.Print(fmt::format("failed: {}: {}", failed->reason, failed->message));
  screen_.Print("logs: " + Shown(directory_.logs()));
  return contract::kExitJobFailed;
}

void JobWatch::Close(const std::string& line) {
  screen_.Clear();
  screen_.Print(line);
}

}  // namespace ringmaster::cli

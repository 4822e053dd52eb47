#include "cli/kubectl/job_detail.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/job_view.h"
#include "cli/kubectl/pod_warnings.h"
#include "cli/kubectl/worker_pods.h"
#include "cli/text.h"
#include "cli/view.h"
#include "common/text.h"
#include "operator/api/salvage.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

namespace v1 = training::v1alpha1;
using kube::Json;

constexpr char kNone[] = "–";
constexpr std::size_t kMostIncidents = 5;

std::string OrNone(const std::string& text) {
  return text.empty() ? kNone : text;
}

std::string WorkersTable(const v1::TrainingJobStatus& status,
                         const std::vector<kube::ObjectPtr>& pods, Time now) {
  std::vector<std::vector<std::string>> rows{{"  RANK", "WORKER", "POD", "NODE", "STATE", "AGE"}};
  for (const WorkerPods& worker : WorkersOf(pods)) {
    const Json& pod = *worker.pods.back();
    const auto member = std::ranges::find(status.members, kube::Uid(pod), &v1::Member::pod_uid);
    rows.push_back({member == status.members.end() ? fmt::format("  {}", kNone)
                                                   : fmt::format("  {}", member->rank),
                    fmt::format("{}", worker.index), kube::Name(pod),
                    OrNone(kube::FindString(pod, {"spec", "nodeName"})), PodState(pod),
                    Ago(kube::FindTime(pod, {"metadata", "creationTimestamp"}), now)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

std::string ConditionsTable(const v1::TrainingJobStatus& status, Time now) {
  std::vector<std::vector<std::string>> rows{{"  CONDITION", "STATUS", "FOR", "MESSAGE"}};
  for (const v1::Condition& condition : status.conditions) {
    rows.push_back({"  " + condition.type, condition.status,
                    Ago(condition.last_transition_time, now), LastCell(condition.message)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

// The latest incidents, newest first.
std::string IncidentsTable(const v1::RestartCounts& restarts, Time now) {
  std::vector<std::vector<std::string>> rows{{"  LOST", "ROUND", "CAUSE", "WHAT HAPPENED"}};
  for (std::size_t i = 0; i < std::min(kMostIncidents, restarts.recent.size()); ++i) {
    const v1::Incident& incident = restarts.recent[restarts.recent.size() - 1 - i];
    rows.push_back({"  " + Ago(incident.time, now), fmt::format("{}", incident.round),
                    incident.cause, LastCell(incident.message)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

// "round 2 · 1 restart · checkpoint of step 250, 12 s old · best of step 200 (Accuracy 0.972)".
std::string RoundLine(const v1::TrainingJobStatus& status, Time now) {
  std::string line = fmt::format("  round {}", status.round);
  if (const int total = status.restarts ? status.restarts->total : 0; total > 0)
    line += fmt::format(" · {}", WithNoun(total, "restart"));
  if (!status.checkpoints.empty()) {
    const v1::CheckpointStatus& newest = status.checkpoints.front();
    line += fmt::format(" · checkpoint of step {}, {} old", newest.step, Ago(newest.time, now));
  }
  if (const auto& best = status.best_checkpoint) {
    const Json metric = v1::ToJson(best->metric);  // a newer operator may name another
    line += fmt::format(" · best of step {} ({} {:.4g})", best->step,
                        metric.is_string() ? metric.get<std::string>() : "metric", best->value);
  }
  return line + '\n';
}

// The last line of a run, for scripts (docs/run-a-job.md).
std::string ResultLine(const v1::TrainingResult& result) {
  return fmt::format("weights sha256:{} steps:{} accuracy:{:.3f}\n", result.weights_sha256,
                     result.steps, result.accuracy);
}

std::string HowItWaits(const Json& pod) {
  const Json* statuses = kube::Find(pod, {"status", "containerStatuses"});
  if (statuses != nullptr && statuses->is_array() && !statuses->empty()) {
    const std::string why = kube::FindString(statuses->front(), {"state", "waiting", "reason"});
    if (!why.empty()) return why;
  }
  const Json* conditions = kube::Find(pod, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return "";
  for (const Json& condition : *conditions) {
    if (kube::FindString(condition, {"type"}) == "PodScheduled" &&
        kube::FindString(condition, {"status"}) == "False")
      return kube::FindString(condition, {"reason"});
  }
  return "";
}

}  // namespace

std::string PodState(const Json& pod) {
  const std::string phase = OrNone(kube::FindString(pod, {"status", "phase"}));
  const bool ended = phase == "Succeeded" || phase == "Failed";
  if (kube::IsDeleting(pod) && !ended) return "Terminating";
  std::string why;
  if (phase == "Failed") why = HowItEnded(pod);
  if (phase == "Pending") why = HowItWaits(pod);
  return why.empty() ? phase : fmt::format("{}: {}", phase, why);
}

std::string JobDetail(const Json& object, const std::vector<kube::ObjectPtr>& pods,
                      const std::vector<Json>& warnings, Time now) {
  const v1::TrainingJob job = api::ReadStored(object).job;
  const v1::TrainingJobStatus status = job.status.value_or(v1::TrainingJobStatus());
  JobView view = ViewOf(kube::Name(object), job, pods, {});
  view.place = "in namespace " + kube::Namespace(object);
  std::string progress = ProgressLine(view);
  if (!progress.starts_with(view.state)) progress.insert(0, view.state + "   ");
  std::string text = fmt::format("{}\n  {}\n", HeaderLine(view), progress);
  if (status.round > 0) text += RoundLine(status, now);
  for (const std::string& table :
       {WorkersTable(status, pods, now), WarningsTable(PendingPods(pods), warnings, now),
        ConditionsTable(status, now),
        status.restarts ? IncidentsTable(*status.restarts, now) : std::string()}) {
    if (!table.empty()) text += '\n' + table;
  }
  if (status.result && view.state == "Succeeded") text += '\n' + ResultLine(*status.result);
  return text;
}

}  // namespace ringmaster::cli::kubectl

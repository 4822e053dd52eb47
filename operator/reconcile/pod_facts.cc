#include "operator/reconcile/pod_facts.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/gang_api.h"
#include "operator/reconcile/names.h"

namespace ringmaster::reconcile {
namespace {

using kube::Find;
using kube::FindString;
using kube::Json;

std::int64_t Number(const std::optional<std::string>& text, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  if (!text) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? value : otherwise;
}

PodPhase ReadPhase(const Json& pod) {
  const std::string phase = FindString(pod, {"status", "phase"});
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  if (phase == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

std::optional<Time> ReadTime(const Json& object, kube::FieldPath path) {
  const std::string text = FindString(object, path);
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<Time> time = ParseTime(text);
  return time.ok() ? std::optional<Time>(*time) : std::nullopt;
}

bool Failed(const Json& container) {
  return kube::FindInt(container, {"state", "terminated", "exitCode"}).value_or(0) != 0;
}

// Whether a container has begun that is no init container.
bool HasBegun(const Json& pod) {
  const Json* statuses = Find(pod, {"status", "containerStatuses"});
  return statuses != nullptr && statuses->is_array() &&
         std::ranges::any_of(*statuses, [](const Json& status) {
           return Find(status, {"state", "running"}) != nullptr ||
                  Find(status, {"state", "terminated"}) != nullptr;
         });
}

// Null where the worker's container has not ended.
const Json* EndedWorker(const Json& pod, std::string_view worker) {
  const Json* statuses = Find(pod, {"status", "containerStatuses"});
  if (statuses == nullptr || !statuses->is_array()) return nullptr;
  for (const Json& status : *statuses) {
    if (FindString(status, {"name"}) == worker)
      return Find(status, {"state", "terminated"}) == nullptr ? nullptr : &status;
  }
  return nullptr;
}

// Not of a pod that is being stopped: programs that are asked to leave may well say 0.
void BelieveWorker(PodFacts& facts) {
  const bool stopped = facts.deleting || !facts.reason.empty() || !facts.disruption.empty();
  const bool speaks = facts.phase == PodPhase::kRunning || facts.phase == PodPhase::kFailed;
  if (stopped || !speaks || !facts.exit_code) return;
  facts.others_run = facts.phase == PodPhase::kRunning;
  facts.phase = *facts.exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
}

// The container whose state speaks for the pod; null before the kubelet has reported any. Init
// containers that wait or failed come first, as long as the others have not begun: from then on the
// only ones left are sidecars, and how these end decides nothing.
const Json* DecidingContainer(const Json& pod) {
  const Json* first = nullptr;
  const bool begun = HasBegun(pod);
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    const bool init = list == "initContainerStatuses";
    const Json* statuses = Find(pod, {"status", list});
    if (statuses == nullptr || !statuses->is_array() || (init && begun)) continue;
    for (const Json& status : *statuses) {
      if (Failed(status)) return &status;
      if (init && Find(status, {"state", "waiting"}) == nullptr) continue;
      if (first == nullptr) first = &status;
    }
  }
  return first;
}

void ReadContainer(const Json& container, PodFacts& facts) {
  facts.waiting_reason = FindString(container, {"state", "waiting", "reason"});
  facts.waiting_message = FindString(container, {"state", "waiting", "message"});
  facts.started_at = ReadTime(container, {"state", "running", "startedAt"});
  if (Find(container, {"state", "terminated"}) == nullptr) return;
  facts.exit_code =
      static_cast<int>(kube::FindInt(container, {"state", "terminated", "exitCode"}).value_or(0));
  facts.exit_reason = FindString(container, {"state", "terminated", "reason"});
  facts.exit_message = FindString(container, {"state", "terminated", "message"});
  facts.started_at = ReadTime(container, {"state", "terminated", "startedAt"});
  facts.finished_at = ReadTime(container, {"state", "terminated", "finishedAt"});
}

bool SaysUnschedulable(const Json& condition) {
  return FindString(condition, {"type"}) == "PodScheduled" &&
         FindString(condition, {"status"}) == "False";
}

bool SaysDisrupted(const Json& condition) {
  return FindString(condition, {"type"}) == "DisruptionTarget" &&
         FindString(condition, {"status"}) == "True";
}

void ReadConditions(const Json& pod, PodFacts& facts) {
  const Json* conditions = Find(pod, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  for (const Json& condition : *conditions) {
    if (SaysUnschedulable(condition)) {
      facts.unschedulable = FindString(condition, {"message"});
      if (facts.unschedulable.empty()) facts.unschedulable = FindString(condition, {"reason"});
    } else if (SaysDisrupted(condition)) {
      facts.disruption = FindString(condition, {"reason"});
      facts.disruption_message = FindString(condition, {"message"});
    }
  }
}

}  // namespace

bool ReadsCondition(const Json& condition) {
  return SaysUnschedulable(condition) || SaysDisrupted(condition);
}

PodFacts ReadPod(const Json& pod, std::string_view worker) {
  PodFacts facts;
  facts.name = kube::Name(pod);
  facts.uid = kube::Uid(pod);
  facts.index = static_cast<int>(Number(kube::Label(pod, contract::kLabelIndex), -1));
  facts.incarnation = static_cast<int>(Number(kube::Label(pod, contract::kLabelIncarnation), -1));
  facts.incidents = Number(kube::Annotation(pod, kAnnotationIncidents), 0);
  facts.phase = ReadPhase(pod);
  facts.deleting = kube::IsDeleting(pod);
  facts.reason = FindString(pod, {"status", "reason"});
  facts.message = FindString(pod, {"status", "message"});
  facts.node = FindString(pod, {"spec", "nodeName"});
  facts.group = GroupNamedIn(pod);
  ReadConditions(pod, facts);
  if (const Json* ended = EndedWorker(pod, worker)) {
    ReadContainer(*ended, facts);
    BelieveWorker(facts);
  } else if (const Json* container = DecidingContainer(pod)) {
    ReadContainer(*container, facts);
  }
  return facts;
}

}  // namespace ringmaster::reconcile

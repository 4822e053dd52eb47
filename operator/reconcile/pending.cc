#include <map>
#include <utility>

#include <fmt/format.h>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// Why a pod does not run: a reason and the cluster's own words. The words are without the pod's
// name, so that pods in one plight make one line.
struct Plight {
  int urgency = 0;  // the highest names the condition's reason
  std::string reason;
  std::string words;

  auto operator<=>(const Plight&) const = default;
};

// Reasons that go by themselves.
bool Passes(const std::string& waiting_reason) {
  return waiting_reason.empty() || waiting_reason == "ContainerCreating" ||
         waiting_reason == "PodInitializing";
}

Plight PlightOf(const Slot& slot) {
  if (slot.pod == nullptr)
    return {.urgency = 0, .reason = kReasonPodsStarting, .words = "starting"};
  const PodFacts& pod = *slot.pod;
  if (!pod.unschedulable.empty()) {
    return {.urgency = 1, .reason = kReasonUnschedulable, .words = pod.unschedulable};
  }
  if (!Passes(pod.waiting_reason)) {
    return {.urgency = 2, .reason = pod.waiting_reason, .words = pod.waiting_message};
  }
  return {.urgency = 0, .reason = kReasonPodsStarting, .words = "starting"};
}

bool Runs(const Slot& slot) {
  return slot.pod != nullptr && (slot.pod->Running() || slot.pod->phase == PodPhase::kSucceeded);
}

std::string Describe(const std::map<Plight, std::vector<std::string>>& plights, std::size_t total) {
  std::string text;
  for (auto it = plights.rbegin(); it != plights.rend(); ++it) {
    const auto& [plight, names] = *it;
    if (!text.empty()) text += "; ";
    if (plight.urgency > 0) text += plight.reason + ": ";
    text += fmt::format("{} of {} ({})", names.size(), Count(total, "pod"), NameList(names));
    if (!plight.words.empty()) text += (plight.urgency > 0 ? ": " : " ") + plight.words;
  }
  return text;
}

}  // namespace

void ApplyPending(Pass& pass) {
  std::map<Plight, std::vector<std::string>> plights;
  for (const Slot& slot : pass.slots) {
    if (Runs(slot)) continue;
    plights[PlightOf(slot)].push_back(
        PodName(pass.name, slot.index, pass.IncarnationOf(slot.index).value_or(0)));
  }
  if (plights.empty()) {
    SetCondition(pass, kConditionPodsReady, true, kReasonPodsRunning,
                 fmt::format("{} of {} run.", pass.slots.size(), Count(pass.slots.size(), "pod")));
    return;
  }
  const Plight& worst = plights.rbegin()->first;
  const v1::Condition* before = FindCondition(pass.status, kConditionPodsReady);
  const std::string gang = WhyGangWaits(pass);
  const std::string reason = gang.empty() ? worst.reason : kReasonUnschedulable;
  const bool news = before == nullptr || before->reason != reason;
  const std::string text = gang + Describe(plights, pass.slots.size());
  SetCondition(pass, kConditionPodsReady, false, reason, text);
  if (news && (worst.urgency > 0 || !gang.empty())) {
    pass.Add(RecordEvent{.warning = true, .reason = reason, .message = text});
  }
}

}  // namespace ringmaster::reconcile

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
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

// Reasons that only a Refusal has.
bool IsRefusal(const std::string& reason) {
  return reason == kReasonForbidden || reason == kReasonNameTaken ||
         reason == kReasonPodGroupRefused;
}

Plight PlightOf(const Slot& slot, const std::optional<Refusal>& refused) {
  if (slot.pod == nullptr && refused)
    return {.urgency = 3, .reason = refused->reason, .words = refused->words};
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
    text += fmt::format("{} of {} ({})", names.size(), WithNoun(total, "pod"), NameList(names));
    if (!plight.words.empty()) text += (plight.urgency > 0 ? ": " : " ") + plight.words;
  }
  return text;
}

// What is told as an event: whatever keeps pods, or what belongs to them, from being as they
// should.
void Set(Pass& pass, bool ready, const std::string& reason, const std::string& text, bool trouble) {
  const v1::Condition* before = FindCondition(pass.status, kConditionPodsReady);
  const bool news = before == nullptr || before->reason != reason;
  SetCondition(pass, kConditionPodsReady, ready, reason, text);
  if (news && trouble) pass.Add(RecordEvent{.warning = true, .reason = reason, .message = text});
}

// What is refused although no pod is missing: something that belongs to the pods.
std::string RefusedBeside(const Pass& pass) {
  const auto misses = [](const Slot& slot) { return slot.pod == nullptr; };
  const std::optional<Refusal>& refused = pass.in.refused;
  if (!refused || std::any_of(pass.slots.begin(), pass.slots.end(), misses)) return "";
  return fmt::format("{}: {}; ", refused->reason, refused->words);
}

// Whether the status tells of a refusal of which this process does not know yet whether it still
// holds.
bool StandsFromBefore(const Pass& pass) {
  const v1::Condition* told = FindCondition(pass.status, kConditionPodsReady);
  return pass.in.nothing_tried && told != nullptr && IsRefusal(told->reason);
}

void AllRun(Pass& pass) {
  std::string text =
      fmt::format("{} of {} run.", pass.slots.size(), WithNoun(pass.slots.size(), "pod"));
  const std::optional<Refusal>& refused = pass.in.refused;
  if (!refused) return Set(pass, true, kReasonPodsRunning, text, /*trouble=*/false);
  Set(pass, true, refused->reason, fmt::format("{} {}", text, refused->words), /*trouble=*/true);
}

}  // namespace

void ApplyPending(Pass& pass) {
  if (StandsFromBefore(pass)) return pass.WakeAt(pass.now);
  std::map<Plight, std::vector<std::string>> plights;
  for (const Slot& slot : pass.slots) {
    if (Runs(slot)) continue;
    plights[PlightOf(slot, pass.in.refused)].push_back(
        PodName(pass.name, slot.index, pass.IncarnationOf(slot.index).value_or(0)));
  }
  if (plights.empty()) return AllRun(pass);
  const Plight& worst = plights.rbegin()->first;
  const std::string gang = WhyGangWaits(pass);
  const std::string beside = RefusedBeside(pass);
  const std::string reason = !beside.empty() ? pass.in.refused->reason
                             : gang.empty()  ? worst.reason
                                             : kReasonUnschedulable;
  Set(pass, false, reason, beside + gang + Describe(plights, pass.slots.size()),
      /*trouble=*/!beside.empty() || !gang.empty() || worst.urgency > 0);
}

}  // namespace ringmaster::reconcile

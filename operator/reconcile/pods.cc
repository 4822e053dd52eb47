#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/worker_pod.h"

namespace ringmaster::reconcile {
namespace {

constexpr std::chrono::seconds kLongestPause(30);

// The first loss of a round is mended at once. Workers that fall again before the next round was
// formed most likely fall at their start: pods are then made at a slower pace, 1, 2, 4 ... 30 s
// after the latest incident.
Time EarliestCreation(const Pass& pass) {
  if (!pass.status.restarts) return pass.now;
  const auto& recent = pass.status.restarts->recent;
  const auto falls = std::count_if(recent.begin(), recent.end(), [&](const v1::Incident& incident) {
    return incident.round == pass.status.round;
  });
  if (falls < 2 || !recent.back().time) return pass.now;
  const auto doublings = std::min<std::ptrdiff_t>(falls - 2, 5);
  const std::chrono::seconds pause(std::int64_t{1} << doublings);
  return *recent.back().time + std::min(pause, kLongestPause);
}

}  // namespace

void ApplyPods(Pass& pass) {
  DeleteOutdatedPods(pass);
  const bool complete = std::all_of(pass.slots.begin(), pass.slots.end(),
                                    [](const Slot& slot) { return slot.pod != nullptr; });
  if (complete) return;
  if (pass.group.awaited) return pass.LetCreationWait();  // its coming brings the next pass
  if (!pass.MayCreateFrom(EarliestCreation(pass))) return;
  std::vector<std::string> created;
  for (const Slot& slot : pass.slots) {
    if (slot.pod != nullptr) continue;
    if (!pass.IncarnationOf(slot.index)) pass.NextIncarnation(slot.index);
    const int incarnation = *pass.IncarnationOf(slot.index);
    pass.Add(CreatePod{BuildWorkerPod(pass, slot.index, incarnation)});
    created.push_back(PodName(pass.name, slot.index, incarnation));
  }
  pass.TellCreated(kReasonPodsCreated,
                   fmt::format("{}: {}", WithNoun(created.size(), "pod"), NameList(created)));
}

}  // namespace ringmaster::reconcile

#include "operator/reconcile/drain.h"

#include <algorithm>

#include <fmt/format.h>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// The first wanted member that was asked to go.
const Slot* Leaver(const Pass& pass) {
  const auto found = std::find_if(pass.slots.begin(), pass.slots.end(), [](const Slot& slot) {
    return slot.member != nullptr && slot.view != nullptr && slot.view->drain_requested;
  });
  return found == pass.slots.end() ? nullptr : &*found;
}

std::string Sentence(const Pass& pass, const Slot& leaver) {
  return fmt::format("Worker {} ({}) was asked to leave{}; then it is replaced.", leaver.index,
                     leaver.pod->name,
                     pass.Native() ? ": all write a checkpoint of one step, and it goes" : "");
}

}  // namespace

void EndDraining(v1::TrainingJobStatus& status) {
  const v1::Condition* draining = FindCondition(status, kConditionDraining);
  if (draining != nullptr && draining->reason == kReasonWorkerLeaving)
    RemoveCondition(status, kConditionDraining);
}

bool MembersStillDrain(Pass& pass) {
  if (!pass.Native()) return false;
  for (const v1::Member& member : pass.status.members) {
    const WorkerView* view = pass.ViewOf(member.pod_uid);
    if (view == nullptr || !view->connected || view->round != pass.status.round) continue;
    if (!view->drain_requested || view->drained_step || view->exited) continue;
    const Time ends = *view->drain_requested + pass.in.settings.drain_timeout;
    if (pass.now >= ends) continue;
    pass.WakeAt(ends);
    return true;
  }
  return false;
}

void ApplyDrain(Pass& pass) {
  const Slot* leaver = pass.status.result ? nullptr : Leaver(pass);
  if (leaver == nullptr) return EndDraining(pass.status);
  const std::string text = Sentence(pass, *leaver);
  const v1::Condition* before = FindCondition(pass.status, kConditionDraining);
  if (before != nullptr && before->message == text) return;
  SetCondition(pass, kConditionDraining, true, kReasonWorkerLeaving, text);
  pass.Note(false, kReasonWorkerLeaving, text);
}

}  // namespace ringmaster::reconcile

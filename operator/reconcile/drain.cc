#include "operator/reconcile/drain.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "operator/reconcile/cause.h"
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

// When a member that has not said that it was asked to leave is waited for no more: it may have
// said so to another operator, and its part of the checkpoint is still to be heard. Nothing where
// the round has lost nobody who was asked to leave, or this one did not take part in that.
std::optional<Time> MayDrainUntil(const Pass& pass, const v1::Member& member) {
  const WorkerView* view = pass.ViewOf(member.pod_uid);
  if (view != nullptr && (view->drain_requested || view->drained_step || view->exited))
    return std::nullopt;
  if (!pass.status.restarts || pass.status.restarts->recent.empty()) return std::nullopt;
  const v1::Incident& last = pass.status.restarts->recent.back();
  if (last.round != pass.status.round || last.cause != ToString(Cause::kPreemption))
    return std::nullopt;
  const bool terminating =
      std::any_of(pass.pods.begin(), pass.pods.end(), [&](const PodFacts& pod) {
        return pod.uid == member.pod_uid && pod.deleting && !pod.Terminal();
      });
  if (!terminating) return std::nullopt;
  return pass.in.workers.since + pass.in.settings.reconnect_timeout;
}

// When the wait for this member ends; nothing where it has left, or has not said that it was asked
// to.
std::optional<Time> DrainsUntil(const Pass& pass, const v1::Member& member) {
  const WorkerView* view = pass.ViewOf(member.pod_uid);
  if (view == nullptr || !view->connected || view->round != pass.status.round) return std::nullopt;
  if (!view->drain_requested || view->drained_step || view->exited) return std::nullopt;
  return *view->drain_requested + pass.in.settings.drain_timeout;
}

using UntilWhen = std::optional<Time> (*)(const Pass& pass, const v1::Member& member);

// Whether a member is waited for. The pass wakes when that is over.
bool WaitsForAny(Pass& pass, UntilWhen until) {
  for (const v1::Member& member : pass.status.members) {
    const std::optional<Time> ends = until(pass, member);
    if (!ends || pass.now >= *ends) continue;
    pass.WakeAt(*ends);
    return true;
  }
  return false;
}

}  // namespace

void EndDraining(v1::TrainingJobStatus& status) {
  const v1::Condition* draining = FindCondition(status, kConditionDraining);
  if (draining != nullptr && draining->reason == kReasonWorkerLeaving)
    RemoveCondition(status, kConditionDraining);
}

bool MembersStillDrain(Pass& pass) {
  return pass.Native() && WaitsForAny(pass, DrainsUntil);
}

bool MembersMayStillDrain(Pass& pass) {
  return MembersStillDrain(pass) || (pass.Native() && WaitsForAny(pass, MayDrainUntil));
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

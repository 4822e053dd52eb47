#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "operator/reconcile/checkpoints.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

constexpr char kDrainReason[] = "the job is being suspended";

std::string Resumption(const Pass& pass) {
  if (!pass.Native()) return "";
  if (pass.status.checkpoints.empty())
    return fmt::format(" No checkpoint exists; it will start from {}.", FirstStep(pass));
  return fmt::format(" It will resume from the checkpoint of step {}.",
                     pass.status.checkpoints.front().step);
}

// Whether the workers drain for this, and not because some were asked to leave.
bool DrainsForThis(const Pass& pass) {
  const v1::Condition* draining = FindCondition(pass.status, kConditionDraining);
  return draining != nullptr && draining->reason == kReasonSuspending;
}

void Resume(Pass& pass) {
  if (DrainsForThis(pass)) RemoveCondition(pass.status, kConditionDraining);
  if (IsTrue(pass.status, kConditionSuspended)) {
    SetCondition(pass, kConditionSuspended, false, kReasonResumed, "spec.suspend is false.");
    pass.Note(false, kReasonResumed, "The job is resumed." + Resumption(pass));
  }
  if (!pass.status.start_time) pass.status.start_time = pass.now;
}

// Whether a worker is in a round and may still write its checkpoint.
bool Drains(const Pass& pass, const v1::Member& member) {
  const auto pod = std::find_if(pass.pods.begin(), pass.pods.end(), [&](const PodFacts& candidate) {
    return candidate.uid == member.pod_uid;
  });
  if (pod == pass.pods.end() || pod->Terminal() || pod->deleting) return false;
  const WorkerView* view = pass.ViewOf(member.pod_uid);
  return view == nullptr || (!view->drained_step && !view->exited);
}

bool AnyDrains(const Pass& pass) {
  return IsTrue(pass.status, kConditionTraining) &&
         std::any_of(pass.status.members.begin(), pass.status.members.end(),
                     [&](const v1::Member& member) { return Drains(pass, member); });
}

// False once nobody is left who could write a checkpoint, or the time for it is over.
bool StillDraining(Pass& pass) {
  if (!AnyDrains(pass)) return false;
  if (!DrainsForThis(pass)) RemoveCondition(pass.status, kConditionDraining);
  if (SetCondition(pass, kConditionDraining, true, kReasonSuspending,
                   "The workers write a checkpoint and leave.")) {
    pass.Note(false, kReasonSuspending,
              "spec.suspend is true: the workers write a checkpoint and leave, then the pods go.");
  }
  const Time ends = FindCondition(pass.status, kConditionDraining)->last_transition_time.value() +
                    pass.in.settings.drain_timeout;
  if (pass.now >= ends) return false;
  pass.WakeAt(ends);
  pass.TellMembers(DrainCommand{kDrainReason});
  return true;
}

// Moves the incarnations past every pod before any is deleted, so that nothing that happens to
// them afterwards is taken for a failure.
void LetPodsGo(Pass& pass) {
  std::set<int> indices;
  for (const PodFacts& pod : pass.pods) {
    if (!pass.Outdated(pod)) indices.insert(pod.index);
  }
  for (const int index : indices) pass.NextIncarnation(index);
  pass.status.members.clear();
  DeleteOutdatedPods(pass);
  DeleteServices(pass);
  DeletePodGroups(pass);
}

}  // namespace

bool ApplySuspend(Pass& pass) {
  if (!pass.spec.suspend) {
    Resume(pass);
    return false;
  }
  if (StillDraining(pass)) return true;
  LetPodsGo(pass);
  RemoveCondition(pass.status, kConditionDraining);
  RemoveCondition(pass.status, kConditionResizing);
  pass.status.start_time.reset();
  pass.status.lost_seconds.reset();  // they count from startTime
  SetCondition(pass, kConditionPodsReady, false, kReasonSuspended, "The job has no pods.");
  SetCondition(pass, kConditionTraining, false, kReasonSuspended, "The job is suspended.");
  const std::string text = "spec.suspend is true; set it to false to go on." + Resumption(pass);
  if (SetCondition(pass, kConditionSuspended, true, kReasonSuspended, text)) {
    pass.Note(false, kReasonSuspended, text);
  }
  return true;
}

}  // namespace ringmaster::reconcile

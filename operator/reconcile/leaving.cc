#include <algorithm>

#include "operator/reconcile/checkpoints.h"
#include "operator/reconcile/completion.h"
#include "operator/reconcile/policies.h"

namespace ringmaster::reconcile {
namespace {

// Whether it is still in its place: how it failed is told by the incident that takes it from there,
// which may wait a moment for what caused it. After the result nobody's failure is one.
bool AwaitsIncident(const Pass& pass, const WorkerView& view) {
  return !pass.status.result && !pass.spec.suspend &&
         std::any_of(pass.slots.begin(), pass.slots.end(), [&](const Slot& slot) {
           return slot.pod != nullptr && slot.pod->uid == view.pod_uid;
         });
}

// What one worker says is mostly in the status that the same pass makes of it. Only a checkpoint
// and the result need the words of several: until the last of them has spoken, those of the others
// are in nobody's memory but ours, and theirs. Who has failed is not kept for that: what replaces
// it may need its place on the node.
bool StillNeeded(const Pass& pass, const WorkerView& view) {
  if (pass.Finished() || !view.exited) return false;
  if (view.exited->exit_code != 0) return AwaitsIncident(pass, view);
  return AwaitsShardsOfOthers(pass, view) || AwaitsResult(pass, view);
}

}  // namespace

void ApplyLeaving(Pass& pass) {
  for (const WorkerView& view : pass.in.workers.workers) {
    if (view.leaving && !StillNeeded(pass, view)) pass.LetGo(view.pod_uid);
  }
}

}  // namespace ringmaster::reconcile

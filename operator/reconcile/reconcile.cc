#include "operator/reconcile/reconcile.h"

#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/pass.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

using Policy = void (*)(Pass&);

// What a job that is neither suspended nor over goes through. Any of them may end it.
constexpr Policy kRunning[] = {
    ApplyActiveDeadline, ApplyDrain,      ApplyKernels, ApplyRestart,
    ApplyScaling,        ApplyScheduling, ApplyRounds,  ApplyPending,
    ApplyStartDeadline,  ApplyService,    ApplyPods,
};

void Run(Pass& pass) {
  if (!pass.in.problems.empty()) {
    pass.Fail(kReasonInvalidSpec, schema::FormatProblems(pass.in.problems));
    return;
  }
  ApplyCheckpoints(pass);
  ApplyProgress(pass);
  ApplyCompletion(pass);
  if (pass.Finished() || ApplySuspend(pass)) return;
  for (const Policy policy : kRunning) {
    policy(pass);
    if (pass.Finished()) return;
  }
}

// Whoever still wants to leave such a job may: its status is not ours to write.
Decision LeaveAlone(const Observed& observed) {
  Decision decision{.result = controller::Done{}};
  for (const WorkerView& view : observed.workers.workers) {
    if (view.leaving) decision.let_go.push_back(view.pod_uid);
  }
  return decision;
}

}  // namespace

bool IsOurs(const Observed& observed) {
  return observed.job.spec.managed_by == contract::kControllerName &&
         kube::FindString(observed.job.metadata, {"deletionTimestamp"}).empty();
}

Decision Reconcile(const Observed& observed) {
  if (!IsOurs(observed)) return LeaveAlone(observed);
  Pass pass(observed);
  if (!pass.Finished()) Run(pass);
  ApplySummary(pass);
  if (pass.Finished()) {
    ApplyCleanup(pass);
    ApplyTtl(pass);
  }
  ApplyLeaving(pass);
  return pass.Take();
}

}  // namespace ringmaster::reconcile

// The policies: one function of one file each, called by Reconcile in the order in which they stand
// here. Each reads the Pass, writes what it decides into it, and is right on its own: none relies
// on another having run in the same pass, only on what an earlier one may have written into status.
#ifndef RINGMASTER_OPERATOR_RECONCILE_POLICIES_H_
#define RINGMASTER_OPERATOR_RECONCILE_POLICIES_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// checkpoints.cc: a checkpoint exists once every member of the round has reported its shard of the
// same step; the newest `keep` stay, and the best where `keepBest` says so. Those that could not be
// written or loaded are named.
void ApplyCheckpoints(Pass& pass);

// progress.cc: the furthest member's latest report, at most once per Settings::progress_interval.
void ApplyProgress(Pass& pass);

// suspend.cc: while spec.suspend holds, workers drain, then their pods go. Returns true when it
// has decided everything that there is to decide in this pass. Sets startTime while it does not
// hold.
bool ApplySuspend(Pass& pass);

// completion.cc: the result, once all members agree that training is over, and success by
// spec.successPolicy.
void ApplyCompletion(Pass& pass);

// deadline.cc: spec.activeDeadlineSeconds since startTime.
void ApplyActiveDeadline(Pass& pass);

// drain.cc: condition Draining while a member was asked to leave by somebody else.
void ApplyDrain(Pass& pass);

// kernels.cc: condition SameBits, and which kernels the job's bits come from.
void ApplyKernels(Pass& pass);

// restart.cc: finds lost workers, names the incident of their round, holds it against the budgets,
// and gives each lost worker its next incarnation.
void ApplyRestart(Pass& pass);

// scaling.cc: workers past spec.workers.replicas leave, after a checkpoint if they are in a round.
// Sets condition Resizing while a voluntary change of members waits for one.
void ApplyScaling(Pass& pass);

// scheduling.cc: the pod group that the workers join, where the cluster has a gang scheduler.
// Before the policies that make pods, and those that say why they wait.
void ApplyScheduling(Pass& pass);

// rounds.cc: forms a round when every wanted worker is connected and ready and the members are not
// those of the round in force; says who is waited for; announces the round in force.
void ApplyRounds(Pass& pass);

// pending.cc: condition PodsReady, with the cluster's own words for why not.
void ApplyPending(Pass& pass);

// deadline.cc: spec.startDeadlineSeconds since the wait for a round began.
void ApplyStartDeadline(Pass& pass);

// service.cc: one headless service, for foreign programs only.
void ApplyService(Pass& pass);

// pods.cc: gives every wanted index an incarnation and a pod; deletes outdated pods.
void ApplyPods(Pass& pass);

// cleanup.cc, once the job has ended: which pods are deleted, by spec.cleanPodPolicy.
void ApplyCleanup(Pass& pass);

// ttl.cc, once the job has ended: deletes the job after spec.ttlSecondsAfterFinished.
void ApplyTtl(Pass& pass);

// leaving.cc, last: who has ended and may leave, because what it said is in the status now, or is
// needed no more.
void ApplyLeaving(Pass& pass);

// summary.cc: counts, state word, selector, goodput, observedGeneration.
void ApplySummary(Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_POLICIES_H_

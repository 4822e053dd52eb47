// The operator's judgement: from what is observed of one job to what is to be done about it.
//
//   const Decision decision = Reconcile({.job = job, .pods = pods, .workers =
//   link.SnapshotFor(key),
//                                        .now = clock.Now(), .settings = settings});
//
// A pure function: no sockets, no clock, no environment, no state between calls. The same
// observation gives the same decision, so what happened to a job can be told again from a script
// (tests/scenarios). It is right from any observation, stale ones included, as long as the status
// in its decision is stored with the resourceVersion of the job that it was made from, and before
// anything else in the decision is carried out. (A new job's pods may come before its first status:
// see decision.h.)
//
// It reads the policies in policies.h in their order: what ended the job comes first, what lost a
// worker before what replaces it, who may form a round before who is waited for.
#ifndef RINGMASTER_OPERATOR_RECONCILE_RECONCILE_H_
#define RINGMASTER_OPERATOR_RECONCILE_RECONCILE_H_

#include "operator/reconcile/decision.h"
#include "operator/reconcile/observed.h"

namespace ringmaster::reconcile {

// Whether the job is this controller's: spec.managedBy names no other one, and it is not on its way
// out. Thread-safe.
bool IsOurs(const Observed& observed);

// Jobs that are not ours are left alone: the decision has no status and no actions. Thread-safe.
Decision Reconcile(const Observed& observed);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_RECONCILE_H_

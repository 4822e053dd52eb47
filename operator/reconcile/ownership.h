// Removing what is the operator's to remove.
#ifndef RINGMASTER_OPERATOR_RECONCILE_OWNERSHIP_H_
#define RINGMASTER_OPERATOR_RECONCILE_OWNERSHIP_H_

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// Deletes the pod unless it is on its way out.
void DeleteOnce(Pass& pass, const PodFacts& pod);

// Deletes the pods that the status has moved past, whatever they do.
void DeleteOutdatedPods(Pass& pass);

// Deletes the job's services.
void DeleteServices(Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_OWNERSHIP_H_

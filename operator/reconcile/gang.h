// What other policies want to know of the job's pod group.
#ifndef RINGMASTER_OPERATOR_RECONCILE_GANG_H_
#define RINGMASTER_OPERATOR_RECONCILE_GANG_H_

#include <string>

#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

// While none of the job's pods has found a place because all must find one at once: a sentence to
// be put before the pods' own words, with what the group says beyond them. Empty otherwise.
std::string WhyGangWaits(const Pass& pass);

// Deletes the job's pod groups.
void DeletePodGroups(Pass& pass);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_GANG_H_

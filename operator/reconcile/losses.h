// Which workers are lost, since when, and whether that is news.
#ifndef RINGMASTER_OPERATOR_RECONCILE_LOSSES_H_
#define RINGMASTER_OPERATOR_RECONCILE_LOSSES_H_

#include <vector>

#include "operator/reconcile/cause.h"
#include "operator/reconcile/pass.h"

namespace ringmaster::reconcile {

struct Loss {
  int index = 0;
  std::string pod;
  Time since;  // when it ended, or was last heard of, as far as is known
  Verdict verdict;
  // It is told by an incident that is recorded already: a later exit of the same lost round.
  bool counted = false;
};

// The wanted workers that are lost, by index: pod vanished, deleting, failed or out of reach,
// program ended, or silent for longer than Settings::reconnect_timeout (where this operator has
// never heard of it: first_contact_timeout), or said to be lost by its peers for as long while its
// launcher is there. A silent worker that may still come back makes the pass wake when that time is
// over. Workers that have done their work are not lost.
std::vector<Loss> FindLosses(Pass& pass);

// The loss that names the incident: the earliest that is not a consequence, else the earliest. Null
// when every loss is counted already.
const Loss* RootOf(const std::vector<Loss>& losses);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_LOSSES_H_

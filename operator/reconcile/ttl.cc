#include <fmt/format.h>

#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {

void ApplyTtl(Pass& pass) {
  if (!pass.spec.ttl_seconds_after_finished || !pass.status.completion_time) return;
  const Time ends =
      *pass.status.completion_time + std::chrono::seconds(*pass.spec.ttl_seconds_after_finished);
  if (pass.now < ends) {
    pass.WakeAt(ends);
    return;
  }
  pass.Note(false, kReasonExpired,
            fmt::format("The job ended more than {} s ago (spec.ttlSecondsAfterFinished); it is "
                        "deleted with all that it owns.",
                        *pass.spec.ttl_seconds_after_finished));
  pass.Add(DeleteJob{pass.uid});
}

}  // namespace ringmaster::reconcile

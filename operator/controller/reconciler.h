// What a reconciler is and what its answers mean.
//
// Reconciling is level-triggered. A pass is told a key, never an event: it reads the state as it is
// now, works out the difference to what the object asks for, and does something about it. That a
// pod was deleted is not in the call; the pass sees that the pod is missing. So a pass may be
// called at any time, twice, late, or after a restart with everything forgotten, and must come to
// the same decisions from the same state. What has to be remembered belongs in the object's status.
//
// (The contract is that of controller-runtime's pkg/reconcile/reconcile.go, with the result as a
// variant so that contradictory answers cannot be written.)
#ifndef RINGMASTER_OPERATOR_CONTROLLER_RECONCILER_H_
#define RINGMASTER_OPERATOR_CONTROLLER_RECONCILER_H_

#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::controller {

using kube::ObjectKey;

// Nothing is left to do until something changes. The key's failure count is cleared.
struct Done {};

// All is well; look again after this time even if nothing changes (a deadline, a ttl). The failure
// count is cleared. A change in between brings the key up earlier and the later look stays due.
struct RequeueAfter {
  Duration delay{};
};

// It did not work this time: the key comes back after its exponential back-off. A resourceVersion
// conflict (kAborted) or an unreachable server is this; conflicts are expected and not logged as
// errors.
struct Retry {
  absl::Status status;
};

// It will never work as things are: the key is left alone until something changes, and the failure
// count is cleared. Say it in the object's status too, where its owner can see it.
struct Terminal {
  absl::Status status;
};

using ReconcileResult = std::variant<Done, RequeueAfter, Retry, Terminal>;

// Retry if the status is an error, else Done.
ReconcileResult RetryIfError(absl::Status status);

// The closed set of labels for metrics: "done", "requeue_after", "retry", "terminal".
std::string_view ResultLabel(const ReconcileResult& result);

class Reconciler {
 public:
  virtual ~Reconciler() = default;

  // One pass for the object of this key, which may be gone. Never called for one key by two threads
  // at once; for different keys it is. An exception that leaves it counts as Retry with kInternal.
  virtual ReconcileResult Reconcile(const ObjectKey& key) = 0;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_RECONCILER_H_

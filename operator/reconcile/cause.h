// Why a worker was lost: one verdict from everything that is known of its end.
//
// What the cluster says of a pod (evicted, node lost) outranks the container's own reason
// (OOMKilled), which outranks signals and exit codes. A worker that left because a peer did is a
// consequence and never names the incident when there is anything better to name.
#ifndef RINGMASTER_OPERATOR_RECONCILE_CAUSE_H_
#define RINGMASTER_OPERATOR_RECONCILE_CAUSE_H_

#include <optional>
#include <string>
#include <string_view>

#include "operator/reconcile/pod_facts.h"
#include "operator/reconcile/worker_view.h"

namespace ringmaster::reconcile {

enum class Cause { kCode, kOutOfMemory, kHardware, kHang, kPreemption, kNodeLost, kUnknown };

// As status.restarts.byCause spells it: "Code", "OutOfMemory", ...
std::string_view ToString(Cause cause);

struct Verdict {
  Cause cause = Cause::kUnknown;
  bool permanent = false;    // a restart would end the same way
  bool consequence = false;  // it went because a peer did
  std::optional<int> exit_code;
  std::string what;  // a clause: "was killed by signal 9 (SIGKILL)"
  std::string log;   // its last lines, "" when nobody has them
};

// The verdict on a worker that is gone, failing, deleting or silent. `pod` is null when the pod has
// vanished; `view` is null when it never dialled in. Exit codes of the native trainer are known, so
// some are permanent; a foreign program's are not.
Verdict Classify(const PodFacts* pod, const WorkerView* view, bool native);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_CAUSE_H_

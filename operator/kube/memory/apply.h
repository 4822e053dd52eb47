// Server-side apply as a pure function.
//
// The manager's earlier fields and their new set are compared through metadata.managedFields:
// fields that it no longer applies and that no other manager applies are removed; fields that
// another manager applies with another value are a conflict, unless forced, and then change hands.
// Only managers that Apply are recorded: a plain Update or Patch owns nothing here, so applying
// over what it wrote is no conflict (on a server it is).
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_APPLY_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_APPLY_H_

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/client.h"
#include "operator/kube/memory/kind.h"

namespace ringmaster::kube::memory {

// The object that results from applying `applied` to `current` (null when it is not there yet),
// managedFields included; still to go through PrepareCreate or PrepareUpdate. Conflict names every
// contested field and its manager.
absl::StatusOr<Json> MergeApply(const Kind& kind, const Json* current, const Json& applied,
                                const ApplyOptions& options, Time now);

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_APPLY_H_

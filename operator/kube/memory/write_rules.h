// What the API server makes of an object on its way in: which metadata is the client's and which
// the server's, what may change, when the generation counts on. Pure functions; the store supplies
// time and ids.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_WRITE_RULES_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_WRITE_RULES_H_

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/client.h"
#include "operator/kube/memory/kind.h"

namespace ringmaster::kube::memory {

// What the server adds to a new object.
struct Birth {
  Time now;
  std::string uid;
  std::string name_suffix;  // behind metadata.generateName, when there is no name
};

// Checks that the body is an object of this kind, and completes apiVersion and kind. BadRequest
// otherwise.
absl::Status CheckBody(const Kind& kind, Json& object);

// The object to store for a Create, but for resourceVersion. BadRequest or Invalid otherwise.
absl::StatusOr<Json> PrepareCreate(const Kind& kind, Json object, const Birth& birth);

// The object to store for an Update to `incoming`: server-owned metadata and the status come from
// `current`. Equal to `current` when nothing changed. Conflict when a uid or resourceVersion in
// `incoming` is another.
absl::StatusOr<Json> PrepareUpdate(const Kind& kind, const Json& current, Json incoming);

// Raises next's generation when anything but metadata and status differs from `current`. To be
// called after defaults were set, so that leaving out what is defaulted is no change.
void CountGeneration(const Kind& kind, const Json& current, Json& next);

// As PrepareUpdate, for PatchStatus.
absl::StatusOr<Json> PrepareStatus(const Kind& kind, const Json& current, const Json& patch,
                                   std::string_view resource_version);

// Conflict unless the object has this uid and this resourceVersion; "" asks for neither.
absl::Status CheckPreconditions(const Kind& kind, const Json& current, const std::string& uid,
                                const std::string& resource_version);

// What a Delete leaves of an object: the object marked deleting, or null when it goes at once.
Json PlanDeletion(const Kind& kind, const Json& current, const DeleteOptions& options, Time now);

// Whether an object that is marked deleting has nothing left that holds it: no finalizer, no
// running grace period.
bool IsReleased(const Json& object);

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_WRITE_RULES_H_

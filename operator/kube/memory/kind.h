// What the store knows about one kind of object: the rules that the API server keeps in its
// registry.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_KIND_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_KIND_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::memory {

enum class Operation { kCreate, kUpdate, kUpdateStatus };

struct AdmissionRequest {
  Operation operation = Operation::kCreate;
  Json& object;         // what would be stored; the hook may set defaults in it
  const Json* current;  // what is stored now; null for kCreate
};

// Defaults and validates objects of a kind before they are stored. A status other than OK refuses
// the write; a kInvalidArgument message should list every problem with its path, and gets `Pod "a"
// is invalid: ` put before it. Called under the store's lock: it must be quick and must not call
// the store.
using Admission = std::function<absl::Status(AdmissionRequest& request)>;

struct Kind {
  ResourceType type;
  // The status is written by PatchStatus alone, and metadata.generation counts changes of
  // everything else.
  bool has_status = false;
  // Deletion waits for the grace period while the object is bound to a node and runs (pods).
  bool graceful = false;
  // An Update needs no resourceVersion.
  bool unconditional_update = true;
  std::string (*problem_with_name)(std::string_view name) = nullptr;
  Admission admission;
  // Objects go this long after their lastTimestamp, when the next of their kind is written (events,
  // as by a server's --event-ttl).
  std::optional<Duration> lifetime = std::nullopt;
};

// The kinds that a new store serves: those named in operator/kube/types.h, pods with the defaults
// and the immutability that the node agent and the reconciler may rely on.
std::vector<Kind> BuiltInKinds();

// BuiltInKinds' hook for pods. On creation: restartPolicy Always, terminationGracePeriodSeconds 30,
// status.phase Pending; at least one container, each named, names unique. On update: the spec is
// immutable but for container images and for nodeName, which may be set once (that is how the local
// node agent binds a pod).
absl::Status AdmitPod(AdmissionRequest& request);

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_KIND_H_

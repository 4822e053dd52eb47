// What a scheduler and the kubelets would write into pods, for the scenarios. Blocks as the client
// does; not thread-safe.
#ifndef RINGMASTER_TESTS_SUPPORT_SCRIPTED_KUBELET_H_
#define RINGMASTER_TESTS_SUPPORT_SCRIPTED_KUBELET_H_

#include <string>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/client.h"

namespace ringmaster::testing {

class ScriptedKubelet {
 public:
  // References must outlive this.
  ScriptedKubelet(kube::Client& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Bound to node-1 and running.
  absl::Status Run(const kube::ObjectKey& pod);
  // Its container has ended; `reason` may be "" for what a kubelet says of this code.
  absl::Status End(const kube::ObjectKey& pod, int exit_code, std::string reason,
                   const std::string& message);
  // The container `name` has ended, another runs on: as with a sidecar of a service mesh.
  absl::Status EndBesideSidecar(const kube::ObjectKey& pod, const std::string& name, int exit_code);
  // Its container waits.
  absl::Status Wait(const kube::ObjectKey& pod, const std::string& reason,
                    const std::string& message);
  // No node takes it.
  absl::Status Unschedulable(const kube::ObjectKey& pod, const std::string& message);
  // It is about to be disrupted (DisruptionTarget).
  absl::Status Disrupt(const kube::ObjectKey& pod, const std::string& reason,
                       const std::string& message);
  // Failed as a whole, as on eviction.
  absl::Status Fail(const kube::ObjectKey& pod, const std::string& reason,
                    const std::string& message);
  // Its containers are gone: the object goes too.
  absl::Status Remove(const kube::ObjectKey& pod);

 private:
  absl::Status Bind(const kube::ObjectKey& pod);
  absl::Status Patch(const kube::ObjectKey& pod, const kube::Json& status);

  kube::Client& api_;
  const Clock& clock_;
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_SCRIPTED_KUBELET_H_

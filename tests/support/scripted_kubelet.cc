#include "tests/support/scripted_kubelet.h"

#include <utility>

#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::testing {
namespace {

using kube::Json;

constexpr char kNode[] = "node-1";

Json ContainerStatus(Json state) {
  return Json::array({{{"name", "worker"}, {"state", std::move(state)}}});
}

Json Condition(const char* type, const char* status, const std::string& reason,
               const std::string& message) {
  return Json::array(
      {{{"type", type}, {"status", status}, {"reason", reason}, {"message", message}}});
}

}  // namespace

absl::Status ScriptedKubelet::Bind(const kube::ObjectKey& pod) {
  RM_ASSIGN_OR_RETURN(Json object, api_.Get(kube::kPod, pod));
  if (!kube::FindString(object, {"spec", "nodeName"}).empty()) return absl::OkStatus();
  object["spec"]["nodeName"] = kNode;
  return api_.Update(kube::kPod, object).status();
}

absl::Status ScriptedKubelet::Patch(const kube::ObjectKey& pod, const Json& status) {
  RM_ASSIGN_OR_RETURN(const Json object, api_.Get(kube::kPod, pod));
  return api_.PatchStatus(kube::kPod, pod, status, kube::ResourceVersion(object)).status();
}

absl::Status ScriptedKubelet::Run(const kube::ObjectKey& pod) {
  RM_RETURN_IF_ERROR(Bind(pod));
  const Json running = {{"running", {{"startedAt", FormatTime(clock_.Now())}}}};
  return Patch(pod, {{"phase", "Running"},
                     {"conditions", Condition("Ready", "True", "", "")},
                     {"containerStatuses", ContainerStatus(running)}});
}

absl::Status ScriptedKubelet::End(const kube::ObjectKey& pod, int exit_code, std::string reason,
                                  const std::string& message) {
  if (reason.empty()) reason = exit_code == 0 ? "Completed" : "Error";
  const Json terminated = {{"terminated",
                            {{"exitCode", exit_code},
                             {"reason", reason},
                             {"message", message},
                             {"finishedAt", FormatTime(clock_.Now())}}}};
  return Patch(pod, {{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
                     {"containerStatuses", ContainerStatus(terminated)}});
}

absl::Status ScriptedKubelet::EndBesideSidecar(const kube::ObjectKey& pod, const std::string& name,
                                               int exit_code) {
  const Json terminated = {
      {"terminated", {{"exitCode", exit_code}, {"finishedAt", FormatTime(clock_.Now())}}}};
  const Json running = {{"running", Json::object()}};
  return Patch(
      pod,
      {{"phase", "Running"},
       {"containerStatuses",
        {{{"name", "a-proxy"}, {"state", running}}, {{"name", name}, {"state", terminated}}}}});
}

absl::Status ScriptedKubelet::Wait(const kube::ObjectKey& pod, const std::string& reason,
                                   const std::string& message) {
  RM_RETURN_IF_ERROR(Bind(pod));
  const Json waiting = {{"waiting", {{"reason", reason}, {"message", message}}}};
  return Patch(pod, {{"phase", "Pending"},
                     {"conditions", Condition("PodScheduled", "True", "", "")},
                     {"containerStatuses", ContainerStatus(waiting)}});
}

absl::Status ScriptedKubelet::Unschedulable(const kube::ObjectKey& pod,
                                            const std::string& message) {
  return Patch(pod, {{"phase", "Pending"},
                     {"conditions", Condition("PodScheduled", "False", "Unschedulable", message)}});
}

absl::Status ScriptedKubelet::Disrupt(const kube::ObjectKey& pod, const std::string& reason,
                                      const std::string& message) {
  RM_RETURN_IF_ERROR(
      Patch(pod, {{"conditions", Condition("DisruptionTarget", "True", reason, message)}}));
  return api_.Delete(kube::kPod, pod, {});
}

absl::Status ScriptedKubelet::Fail(const kube::ObjectKey& pod, const std::string& reason,
                                   const std::string& message) {
  return Patch(pod, {{"phase", "Failed"}, {"reason", reason}, {"message", message}});
}

absl::Status ScriptedKubelet::Remove(const kube::ObjectKey& pod) {
  return api_.Delete(kube::kPod, pod, {.grace_period = std::chrono::seconds(0)});
}

}  // namespace ringmaster::testing

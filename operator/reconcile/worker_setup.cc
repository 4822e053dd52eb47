#include "operator/reconcile/worker_setup.h"

#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "operator/kube/object.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;

// The kubelet renews it when 80 % of this have passed.
constexpr int kTokenSeconds = 3600;

Json RestrictedContainer() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"runAsNonRoot", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

// What a cluster taints nodes with that it does not hear of, or that say that they cannot work.
constexpr const char* kLostNodeTaints[] = {"node.kubernetes.io/not-ready",
                                           "node.kubernetes.io/unreachable"};
// How long a worker's pod stays on such a node. Kubernetes' own default of 300 s is for services
// that have replicas elsewhere; a job waits for each of its workers.
constexpr int kStaysOnLostNodeSeconds = 30;

// Whether the template says itself how long its pods stay: the rule is the API server's own.
bool Tolerates(const Json& tolerations, const char* taint) {
  for (const Json& toleration : tolerations) {
    const std::string key = kube::FindString(toleration, {"key"});
    const std::string effect = kube::FindString(toleration, {"effect"});
    if ((key == taint || key.empty()) && (effect == "NoExecute" || effect.empty())) return true;
  }
  return false;
}

}  // namespace

void LeaveLostNodesSoon(Json& spec) {
  Json& tolerations = spec["tolerations"];
  if (tolerations.is_null()) tolerations = Json::array();
  if (!tolerations.is_array()) return;  // the API server says so
  for (const char* taint : kLostNodeTaints) {
    if (Tolerates(tolerations, taint)) continue;
    tolerations.push_back({{"key", taint},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kStaysOnLostNodeSeconds}});
  }
}

void MountVolume(Json& spec, Json& container, Json volume, const std::string& name,
                 const std::string& path, bool read_only) {
  volume["name"] = name;
  spec["volumes"].push_back(std::move(volume));
  Json mount = {{"name", name}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  container["volumeMounts"].push_back(std::move(mount));
}

void MountToken(Json& spec, Json& container) {
  const Json token = {{"audience", contract::kTokenAudience},
                      {"expirationSeconds", kTokenSeconds},
                      {"path", "token"}};
  const Json sources = Json::array({{{"serviceAccountToken", token}}});
  MountVolume(spec, container, {{"projected", {{"sources", sources}}}}, kTokenVolume, kTokenMount,
              /*read_only=*/true);
  if (!spec.contains("automountServiceAccountToken")) spec["automountServiceAccountToken"] = false;
}

std::vector<std::string> InstallLauncher(const Settings& settings, Json& spec, Json& container) {
  const std::string folder = kLauncherMount;
  Json installer = {{"name", kLauncherVolume},
                    {"image", settings.launcher_image},
                    {"command", {"ringmaster-launcher", "--install", folder}}};
  if (settings.restricted_pods) installer["securityContext"] = RestrictedContainer();
  MountVolume(spec, container, {{"emptyDir", Json::object()}}, kLauncherVolume, folder);
  installer["volumeMounts"] = Json::array({{{"name", kLauncherVolume}, {"mountPath", folder}}});
  spec["initContainers"].push_back(std::move(installer));
  // With the libraries that it was built with, whatever the image has (launcher/install.h).
  return {folder + "/ld.so", "--library-path", folder, folder + "/ringmaster-launcher"};
}

void Restrict(Json& spec, Json& container) {
  spec["securityContext"] = {{"runAsNonRoot", true},
                             {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  container["securityContext"] = RestrictedContainer();
  MountVolume(spec, container, {{"emptyDir", Json::object()}}, kTemporaryVolume, "/tmp");
}

}  // namespace ringmaster::reconcile

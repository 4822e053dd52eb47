#include "operator/reconcile/worker_setup.h"

#include <nlohmann/json.hpp>

#include "common/contract.h"

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

}  // namespace

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

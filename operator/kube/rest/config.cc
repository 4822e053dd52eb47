#include "operator/kube/rest/config.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/env.h"
#include "common/file.h"
#include "common/status.h"
#include "operator/kube/rest/in_cluster.h"
#include "operator/kube/rest/kubeconfig.h"

namespace ringmaster::kube::rest {
namespace {

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// The files in $KUBECONFIG that are there; a list may name some that are not.
std::vector<std::string> FilesInEnvironment() {
  std::vector<std::string> files;
  const std::string list = env::GetString("KUBECONFIG");
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string path(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    std::error_code ignored;
    if (!path.empty() && std::filesystem::exists(path, ignored)) files.push_back(path);
  }
  return files;
}

absl::StatusOr<Config> LoadMerged(const std::vector<std::string>& paths,
                                  const std::string& context) {
  std::vector<Json> files;
  for (const std::string& path : paths) {
    RM_ASSIGN_OR_RETURN(Json file, ReadKubeconfig(path));
    files.push_back(std::move(file));
  }
  return SelectContext(MergeKubeconfigs(files), context, fmt::format("{}", fmt::join(paths, ":")));
}

}  // namespace

absl::StatusOr<Config> InClusterConfig(const std::string& host, const std::string& port,
                                       const std::string& folder) {
  Config config;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  config.server = is_ipv6 ? fmt::format("https://[{}]:{}", host, port)
                          : fmt::format("https://{}:{}", host, port);
  config.origin = "the pod's service account";
  RM_ASSIGN_OR_RETURN(config.ca_pem, ReadFile(folder + "/ca.crt"));
  config.credentials =
      FileCredentials({.token_file = folder + "/token", .authority_file = folder + "/ca.crt"});
  RM_RETURN_IF_ERROR(config.credentials->Get().status());
  const auto ns = ReadFile(folder + "/namespace");
  if (ns.ok() && !ns->empty()) config.default_namespace = *ns;
  return config;
}

absl::StatusOr<Config> LoadInCluster() {
  if (!env::IsSet("KUBERNETES_SERVICE_HOST") || !env::IsSet("KUBERNETES_SERVICE_PORT")) {
    return absl::NotFoundError(
        "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  auto config = InClusterConfig(env::GetString("KUBERNETES_SERVICE_HOST"),
                                env::GetString("KUBERNETES_SERVICE_PORT"), kServiceAccount);
  if (!config.ok()) {
    return Annotate(config.status(),
                    "the pod's service account (is automountServiceAccountToken false?)");
  }
  return config;
}

absl::StatusOr<Config> LoadKubeconfig(const std::string& path, const std::string& context) {
  return LoadMerged({path}, context);
}

absl::StatusOr<Config> LoadDefault(const ConfigSource& source) {
  if (!source.kubeconfig.empty()) return LoadKubeconfig(source.kubeconfig, source.context);
  if (env::IsSet("KUBECONFIG")) {
    const std::vector<std::string> files = FilesInEnvironment();
    if (files.empty()) {
      return absl::NotFoundError(
          fmt::format("KUBECONFIG={}: no such file", env::GetString("KUBECONFIG")));
    }
    return LoadMerged(files, source.context);
  }
  const std::string home = env::GetString("HOME") + "/.kube/config";
  std::error_code ignored;
  if (std::filesystem::exists(home, ignored)) return LoadKubeconfig(home, source.context);
  auto config = LoadInCluster();
  if (absl::IsNotFound(config.status()) && !env::IsSet("KUBERNETES_SERVICE_HOST")) {
    return absl::NotFoundError(fmt::format(
        "no cluster is configured: neither $KUBECONFIG nor {} is there, and this is no pod; name a "
        "file with --kubeconfig",
        home));
  }
  return config;
}

}  // namespace ringmaster::kube::rest

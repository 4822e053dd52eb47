#include "operator/kube/rest/kubeconfig.h"

#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/base64.h"
#include "common/file.h"
#include "common/status.h"
#include "operator/api/yaml.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::rest {
namespace {

constexpr std::array<const char*, 3> kLists = {"clusters", "contexts", "users"};
constexpr std::string_view kExecApi = "client.authentication.k8s.io/";

// One entry of clusters, contexts or users, and what to call it in a message.
struct Entry {
  Json value;
  std::string where;  // "/home/ada/.kube/config: user \"ada\""
};

absl::Status Wrong(const std::string& where, std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}: {}", where, field, why));
}

// "" when it is not there.
absl::StatusOr<std::string> Text(const Json& object, std::string_view field,
                                 const std::string& where) {
  const Json* value = Find(object, {field});
  if (value == nullptr) return std::string();
  if (!value->is_string()) return Wrong(where, field, "must be text; put it in quotes");
  return value->get<std::string>();
}

absl::StatusOr<Entry> FindEntry(const Json& kubeconfig, const char* list, const char* kind,
                                const std::string& name, const std::string& origin) {
  const std::string where = fmt::format("{}: {} \"{}\"", origin, kind, name);
  const Json* entries = Find(kubeconfig, {list});
  if (entries != nullptr && entries->is_array()) {
    for (const Json& entry : *entries) {
      if (FindString(entry, {"name"}) != name) continue;
      const Json* value = Find(entry, {kind});
      return Entry{value == nullptr ? Json::object() : *value, where};
    }
  }
  return absl::InvalidArgumentError(where + " is not there");
}

// The bytes of NAME-data, base64, or else of the file NAME.
absl::StatusOr<std::string> DataOrFile(const Entry& entry, const std::string& name) {
  RM_ASSIGN_OR_RETURN(const std::string data, Text(entry.value, name + "-data", entry.where));
  if (!data.empty()) {
    auto bytes = DecodeBase64(data);
    return bytes.ok() ? bytes : Wrong(entry.where, name + "-data", Message(bytes.status()));
  }
  RM_ASSIGN_OR_RETURN(const std::string path, Text(entry.value, name, entry.where));
  if (path.empty()) return std::string();
  auto content = ReadFile(path);
  if (!content.ok()) return Annotate(content.status(), entry.where + ": " + name);
  return content;
}

// Fields that would change who we are or where we connect, were they not ignored.
absl::Status RefuseFields(const Entry& entry, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    const Json* value = Find(entry.value, {field});
    if (value == nullptr || value->empty() || *value == "") continue;
    return Wrong(entry.where, field, "is not supported; use a token, a certificate or exec");
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecPlugin> ExecOf(const Entry& user, const Json& cluster) {
  const Json& exec = *Find(user.value, {"exec"});
  const std::string where = user.where + ": exec";
  ExecPlugin plugin;
  RM_ASSIGN_OR_RETURN(plugin.api_version, Text(exec, "apiVersion", where));
  if (plugin.api_version != std::string(kExecApi) + "v1" &&
      plugin.api_version != std::string(kExecApi) + "v1beta1") {
    return Wrong(where, "apiVersion",
                 fmt::format("must be {}v1; does the plugin have a newer version?", kExecApi));
  }
  RM_ASSIGN_OR_RETURN(plugin.command, Text(exec, "command", where));
  if (plugin.command.empty()) return Wrong(where, "command", "is missing");
  RM_ASSIGN_OR_RETURN(plugin.install_hint, Text(exec, "installHint", where));
  if (FindString(exec, {"interactiveMode"}) == "Always") {
    return Wrong(where, "interactiveMode", "Always needs a person; this client has none to ask");
  }
  if (const Json* args = Find(exec, {"args"})) {
    for (const Json& arg : *args) {
      if (!arg.is_string()) return Wrong(where, "args", "must be a list of text");
      plugin.args.push_back(arg.get<std::string>());
    }
  }
  if (const Json* env = Find(exec, {"env"})) {
    for (const Json& variable : *env) {
      plugin.env.emplace_back(FindString(variable, {"name"}), FindString(variable, {"value"}));
    }
  }
  if (FindBool(exec, {"provideClusterInfo"})) plugin.cluster = std::make_shared<Json>(cluster);
  return plugin;
}

absl::StatusOr<CredentialFiles> FilesOf(const Entry& user) {
  CredentialFiles files;
  RM_ASSIGN_OR_RETURN(files.fixed.bearer_token, Text(user.value, "token", user.where));
  RM_ASSIGN_OR_RETURN(files.token_file, Text(user.value, "tokenFile", user.where));
  const auto part = [&](const std::string& name, std::string& fixed,
                        std::string& file) -> absl::Status {
    // Read now also where it is a file, so that a missing one is an error at once.
    RM_ASSIGN_OR_RETURN(fixed, DataOrFile(user, name));
    if (FindString(user.value, {name + "-data"}).empty()) file = FindString(user.value, {name});
    return absl::OkStatus();
  };
  RM_RETURN_IF_ERROR(part("client-certificate", files.fixed.client_certificate_pem,
                          files.client_certificate_file));
  RM_RETURN_IF_ERROR(part("client-key", files.fixed.client_key_pem, files.client_key_file));
  if (files.fixed.client_certificate_pem.empty() != files.fixed.client_key_pem.empty()) {
    return Wrong(user.where, "client-certificate", "and client-key come together");
  }
  return files;
}

absl::StatusOr<std::shared_ptr<CredentialSource>> CredentialsOf(const Entry& user,
                                                                const Json& cluster) {
  RM_RETURN_IF_ERROR(RefuseFields(user, {"auth-provider", "username", "password", "as", "as-uid",
                                         "as-groups", "as-user-extra"}));
  RM_ASSIGN_OR_RETURN(CredentialFiles files, FilesOf(user));
  // A token beside a plugin wins, as it does for kubectl.
  const bool has_token = !files.fixed.bearer_token.empty() || !files.token_file.empty();
  if (const Json* exec = Find(user.value, {"exec"}); exec != nullptr && !has_token) {
    RM_ASSIGN_OR_RETURN(ExecPlugin plugin, ExecOf(user, cluster));
    return ExecCredentials(std::move(plugin));
  }
  if (files.token_file.empty() && files.client_certificate_file.empty() &&
      files.client_key_file.empty()) {
    return files.fixed == Credentials{} ? nullptr : StaticCredentials(std::move(files.fixed));
  }
  return FileCredentials(std::move(files));
}

// What exec.provideClusterInfo hands over.
Json ClusterInfo(const Entry& cluster, const Config& config) {
  Json info = {{"server", config.server}};
  if (!config.tls_server_name.empty()) info["tls-server-name"] = config.tls_server_name;
  if (config.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
  if (!config.ca_pem.empty()) info["certificate-authority-data"] = EncodeBase64(config.ca_pem);
  const Json* extensions = Find(cluster.value, {"extensions"});
  if (extensions != nullptr && extensions->is_array()) {
    for (const Json& extension : *extensions) {
      if (FindString(extension, {"name"}) != "client.authentication.k8s.io/exec") continue;
      if (const Json* value = Find(extension, {"extension"})) info["config"] = *value;
    }
  }
  return info;
}

absl::Status ReadCluster(const Entry& cluster, Config& config) {
  RM_RETURN_IF_ERROR(RefuseFields(cluster, {"proxy-url"}));
  RM_ASSIGN_OR_RETURN(config.server, Text(cluster.value, "server", cluster.where));
  if (config.server.empty()) return Wrong(cluster.where, "server", "is missing");
  RM_ASSIGN_OR_RETURN(config.tls_server_name,
                      Text(cluster.value, "tls-server-name", cluster.where));
  RM_ASSIGN_OR_RETURN(config.ca_pem, DataOrFile(cluster, "certificate-authority"));
  config.insecure_skip_tls_verify = FindBool(cluster.value, {"insecure-skip-tls-verify"});
  return absl::OkStatus();
}

// Relative to the folder of the file that names it.
void Absolute(Json& object, const char* field, const std::filesystem::path& folder) {
  const std::string path = FindString(object, {field});
  if (!path.empty() && path[0] != '/') object[field] = (folder / path).lexically_normal().string();
}

void MakePathsAbsolute(Json& kubeconfig, const std::filesystem::path& folder) {
  const auto each = [&](const char* list, const char* kind, auto&& change) {
    if (!kubeconfig[list].is_array()) return;
    for (Json& entry : kubeconfig[list]) {
      if (entry.is_object() && entry[kind].is_object()) change(entry[kind]);
    }
  };
  each("clusters", "cluster",
       [&](Json& cluster) { Absolute(cluster, "certificate-authority", folder); });
  each("users", "user", [&](Json& user) {
    for (const char* field : {"client-certificate", "client-key", "tokenFile"}) {
      Absolute(user, field, folder);
    }
    if (!user.contains("exec") || !user["exec"].is_object()) return;
    // A bare name is looked up in PATH.
    if (FindString(user["exec"], {"command"}).find('/') != std::string::npos) {
      Absolute(user["exec"], "command", folder);
    }
  });
}

}  // namespace

absl::StatusOr<Json> ReadKubeconfig(const std::string& path) {
  RM_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, api::kMaxYamlBytes));
  api::YamlDocument document = api::ParseYaml(text);
  if (!document.errors.empty()) {
    const api::Diagnostic& first = document.errors.front();
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: {}: {}", path, first.line, first.path, first.message));
  }
  if (document.value.is_null()) return Json::object();
  const std::string kind = FindString(document.value, {"kind"});
  if (!document.value.is_object() || (!kind.empty() && kind != "Config")) {
    return absl::InvalidArgumentError(path + ": is no kubeconfig (kind: Config)");
  }
  MakePathsAbsolute(document.value,
                    std::filesystem::absolute(std::filesystem::path(path)).parent_path());
  return std::move(document.value);
}

Json MergeKubeconfigs(const std::vector<Json>& files) {
  Json merged = {{"current-context", ""}};
  for (const char* list : kLists) merged[list] = Json::array();
  for (const Json& file : files) {
    if (merged["current-context"] == "") {
      merged["current-context"] = FindString(file, {"current-context"});
    }
    // FindEntry takes the first of a name.
    for (const char* list : kLists) {
      const Json* entries = Find(file, {list});
      if (entries == nullptr || !entries->is_array()) continue;
      for (const Json& entry : *entries) merged[list].push_back(entry);
    }
  }
  return merged;
}

absl::StatusOr<Config> SelectContext(const Json& kubeconfig, const std::string& context,
                                     const std::string& origin) {
  const std::string name = context.empty() ? FindString(kubeconfig, {"current-context"}) : context;
  if (name.empty()) {
    return absl::InvalidArgumentError(origin + ": no current-context; name a context");
  }
  RM_ASSIGN_OR_RETURN(const Entry chosen,
                      FindEntry(kubeconfig, "contexts", "context", name, origin));
  Config config;
  config.origin = fmt::format("{}, context {}", origin, name);
  RM_ASSIGN_OR_RETURN(const std::string ns, Text(chosen.value, "namespace", chosen.where));
  if (!ns.empty()) config.default_namespace = ns;
  RM_ASSIGN_OR_RETURN(const std::string cluster_name, Text(chosen.value, "cluster", chosen.where));
  RM_ASSIGN_OR_RETURN(const Entry cluster,
                      FindEntry(kubeconfig, "clusters", "cluster", cluster_name, origin));
  RM_RETURN_IF_ERROR(ReadCluster(cluster, config));
  RM_ASSIGN_OR_RETURN(const std::string user_name, Text(chosen.value, "user", chosen.where));
  if (!user_name.empty()) {
    RM_ASSIGN_OR_RETURN(const Entry user,
                        FindEntry(kubeconfig, "users", "user", user_name, origin));
    RM_ASSIGN_OR_RETURN(config.credentials, CredentialsOf(user, ClusterInfo(cluster, config)));
  }
  return config;
}

}  // namespace ringmaster::kube::rest

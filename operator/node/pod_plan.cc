#include "operator/node/pod_plan.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/node/volumes.h"

namespace ringmaster::node {
namespace {

using kube::Json;
using Environment = std::map<std::string, std::string>;

constexpr char kEntryPoint[] = "ringmaster-launcher";

// Fields that are honoured, and those that only place a pod on a cluster or fence it in.
const std::set<std::string_view> kPodFields = {"containers",
                                               "volumes",
                                               "restartPolicy",
                                               "terminationGracePeriodSeconds",
                                               "nodeName",
                                               "affinity",
                                               "automountServiceAccountToken",
                                               "dnsConfig",
                                               "dnsPolicy",
                                               "enableServiceLinks",
                                               "hostname",
                                               "imagePullSecrets",
                                               "nodeSelector",
                                               "os",
                                               "preemptionPolicy",
                                               "priority",
                                               "priorityClassName",
                                               "runtimeClassName",
                                               "schedulerName",
                                               "schedulingGates",
                                               "securityContext",
                                               "serviceAccount",
                                               "serviceAccountName",
                                               "subdomain",
                                               "tolerations",
                                               "topologySpreadConstraints"};
const std::set<std::string_view> kContainerFields = {"name",
                                                     "command",
                                                     "args",
                                                     "env",
                                                     "envFrom",
                                                     "workingDir",
                                                     "resources",
                                                     "volumeMounts",
                                                     "image",
                                                     "imagePullPolicy",
                                                     "ports",
                                                     "securityContext",
                                                     "terminationMessagePath",
                                                     "terminationMessagePolicy"};

absl::Status RefuseOtherFields(const Json& object, const std::set<std::string_view>& fields,
                               const std::string& path) {
  for (const auto& [field, value] : object.items()) {
    if (!fields.contains(field)) {
      return absl::UnimplementedError(
          fmt::format("{}.{}: not supported where pods are processes of one machine; leave it out, "
                      "or run the job on a cluster",
                      path, field));
    }
  }
  return absl::OkStatus();
}

// The downward API's fields of a pod.
absl::StatusOr<std::string> FieldRef(const Json& pod, const std::string& path,
                                     const PlanContext& context) {
  if (path == "metadata.name") return kube::Name(pod);
  if (path == "metadata.namespace") return kube::Namespace(pod);
  if (path == "metadata.uid") return kube::Uid(pod);
  if (path == "status.podIP" || path == "status.podIPs") return context.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return context.host_ip;
  if (path == "spec.nodeName") return context.node_name;
  if (path == "spec.serviceAccountName")
    return kube::FindString(pod, {"spec", "serviceAccountName"});
  for (const auto& [prefix, labels] :
       {std::pair("metadata.labels['", true), std::pair("metadata.annotations['", false)}) {
    if (path.starts_with(prefix) && path.ends_with("']")) {
      const std::string key = path.substr(std::string_view(prefix).size(),
                                          path.size() - std::string_view(prefix).size() - 2);
      return (labels ? kube::Label(pod, key) : kube::Annotation(pod, key)).value_or("");
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("fieldRef.fieldPath '{}' is not a field of the downward API", path));
}

// The value of one key of a ConfigMap or Secret; nothing when it is optional and absent.
absl::StatusOr<std::optional<std::string>> KeyRef(const Json& ref, const kube::ResourceType& type,
                                                  const PlanContext& context) {
  const std::string name = kube::FindString(ref, {"name"});
  const std::string key = kube::FindString(ref, {"key"});
  const bool is_optional = kube::FindBool(ref, {"optional"});
  const auto object = context.read(type, name);
  if (!object.ok()) {
    if (is_optional && absl::IsNotFound(object.status())) return std::optional<std::string>();
    return Annotate(object.status(), fmt::format("{} {}", type.kind, name));
  }
  RM_ASSIGN_OR_RETURN(const auto entries, DataOf(*object));
  const auto entry = entries.find(key);
  if (entry != entries.end()) return std::optional(entry->second);
  if (is_optional) return std::optional<std::string>();
  return absl::NotFoundError(fmt::format("{} {} has no key {}", type.kind, name, key));
}

// $(NAME) becomes the variable's value, $$ a dollar sign; an unknown name stays as it is, as in a
// kubelet.
std::string Expand(const std::string& text, const Environment& environment) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$' || at + 1 == text.size()) {
      result += text[at];
    } else if (text[at + 1] == '$') {
      result += '$';
      ++at;
    } else if (const size_t end = text.find(')', at);
               text[at + 1] == '(' && end != std::string::npos) {
      const auto value = environment.find(text.substr(at + 2, end - at - 2));
      result += value == environment.end() ? text.substr(at, end - at + 1) : value->second;
      at = end;
    } else {
      result += '$';
    }
  }
  return result;
}

absl::StatusOr<std::optional<std::string>> EnvValue(const Json& entry, const Json& pod,
                                                    const Environment& declared,
                                                    const PlanContext& context) {
  const Json* from = kube::Find(entry, {"valueFrom"});
  if (from == nullptr) return std::optional(Expand(kube::FindString(entry, {"value"}), declared));
  if (const Json* ref = kube::Find(*from, {"fieldRef"})) {
    RM_ASSIGN_OR_RETURN(std::string value,
                        FieldRef(pod, kube::FindString(*ref, {"fieldPath"}), context));
    return std::optional(std::move(value));
  }
  if (const Json* ref = kube::Find(*from, {"configMapKeyRef"}))
    return KeyRef(*ref, kube::kConfigMap, context);
  if (const Json* ref = kube::Find(*from, {"secretKeyRef"}))
    return KeyRef(*ref, kube::kSecret, context);
  return absl::UnimplementedError(
      "valueFrom: only fieldRef, configMapKeyRef and secretKeyRef are supported here");
}

absl::Status AddEnvFrom(const Json& container, const PlanContext& context,
                        Environment& environment) {
  const Json* sources = kube::Find(container, {"envFrom"});
  if (sources == nullptr || !sources->is_array()) return absl::OkStatus();
  for (const Json& source : *sources) {
    const bool secret = source.contains("secretRef");
    const Json* ref = kube::Find(source, {secret ? "secretRef" : "configMapRef"});
    if (ref == nullptr)
      return absl::InvalidArgumentError("envFrom: neither configMapRef nor secretRef");
    const auto object =
        context.read(secret ? kube::kSecret : kube::kConfigMap, kube::FindString(*ref, {"name"}));
    if (!object.ok() && absl::IsNotFound(object.status()) && kube::FindBool(*ref, {"optional"}))
      continue;
    RM_RETURN_IF_ERROR(object.status());
    RM_ASSIGN_OR_RETURN(const auto entries, DataOf(*object));
    for (const auto& [key, value] : entries)
      environment[kube::FindString(source, {"prefix"}) + key] = value;
  }
  return absl::OkStatus();
}

absl::StatusOr<Environment> ContainerEnvironment(const Json& container, const Json& pod,
                                                 const PlanContext& context, const Mounts& mounts) {
  Environment environment = context.environment;
  RM_RETURN_IF_ERROR(AddEnvFrom(container, context, environment));
  if (const Json* list = kube::Find(container, {"env"}); list != nullptr && list->is_array()) {
    for (const Json& entry : *list) {
      const std::string name = kube::FindString(entry, {"name"});
      auto value = EnvValue(entry, pod, environment, context);
      if (!value.ok()) return Annotate(value.status(), fmt::format("env[{}]", name));
      if (value->has_value()) environment[name] = RewritePaths(**value, mounts);
    }
  }
  environment["PATH"] = context.bin_directory + ":" + environment["PATH"];
  return environment;
}

std::vector<std::string> StringList(const Json& container, std::string_view field) {
  std::vector<std::string> texts;
  const Json* list = kube::Find(container, {field});
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& item : *list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

absl::Status AddRequests(const Json& container, Resources& requests) {
  const Json* declared = kube::Find(container, {"resources", "requests"});
  if (declared == nullptr) declared = kube::Find(container, {"resources", "limits"});
  if (declared == nullptr || !declared->is_object()) return absl::OkStatus();
  for (const auto& [resource, value] : declared->items()) {
    const auto quantity =
        ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump());
    if (!quantity.ok()) return Annotate(quantity.status(), "resources." + resource);
    if (resource == "cpu") {
      requests.cpus += *quantity;
    } else if (resource == "memory") {
      requests.memory_bytes += *quantity;
    } else if (resource != "ephemeral-storage" && *quantity > 0) {
      return absl::UnimplementedError(
          fmt::format("resources.{}: this machine offers cpu and memory only", resource));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ContainerPlan> PlanContainer(const Json& container, const Json& pod,
                                            const PlanContext& context,
                                            const std::map<std::string, std::string>& volumes,
                                            bool only_one) {
  ContainerPlan plan;
  plan.name = kube::FindString(container, {"name"});
  plan.image = kube::FindString(container, {"image"});
  RM_RETURN_IF_ERROR(RefuseOtherFields(container, kContainerFields,
                                       fmt::format("spec.containers[{}]", plan.name)));
  RM_ASSIGN_OR_RETURN(const Mounts mounts, ContainerMounts(container, volumes));
  RM_ASSIGN_OR_RETURN(const Environment environment,
                      ContainerEnvironment(container, pod, context, mounts));
  plan.process.argv = StringList(container, "command");
  if (plan.process.argv.empty()) plan.process.argv.push_back(kEntryPoint);
  for (std::string& argument : StringList(container, "args"))
    plan.process.argv.push_back(std::move(argument));
  for (std::string& argument : plan.process.argv)
    argument = RewritePaths(Expand(argument, environment), mounts);
  for (const auto& [name, value] : environment)
    plan.process.environment.push_back(name + "=" + value);
  plan.process.directory = RewritePaths(kube::FindString(container, {"workingDir"}), mounts);
  if (plan.process.directory.empty()) plan.process.directory = context.workspace;
  plan.process.log_path =
      only_one ? fmt::format("{}/{}.log", context.log_directory, kube::Name(pod))
               : fmt::format("{}/{}.{}.log", context.log_directory, kube::Name(pod), plan.name);
  return plan;
}

absl::StatusOr<RestartPolicy> ParseRestartPolicy(const std::string& text) {
  if (text.empty() || text == "Always") return RestartPolicy::kAlways;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Never") return RestartPolicy::kNever;
  return absl::InvalidArgumentError(
      fmt::format("spec.restartPolicy: '{}' is none of Always, OnFailure, Never", text));
}

}  // namespace

absl::StatusOr<PodPlan> PlanPod(const Json& pod, const PlanContext& context) {
  const Json* spec = kube::Find(pod, {"spec"});
  const Json* containers = kube::Find(pod, {"spec", "containers"});
  if (spec == nullptr || containers == nullptr || !containers->is_array() || containers->empty()) {
    return absl::InvalidArgumentError("spec.containers: a pod needs at least one container");
  }
  RM_RETURN_IF_ERROR(RefuseOtherFields(*spec, kPodFields, "spec"));
  PodPlan plan;
  RM_ASSIGN_OR_RETURN(plan.restart_policy,
                      ParseRestartPolicy(kube::FindString(*spec, {"restartPolicy"})));
  plan.grace_period =
      std::chrono::seconds(kube::FindInt(*spec, {"terminationGracePeriodSeconds"}).value_or(30));
  RM_ASSIGN_OR_RETURN(const auto volumes, VolumePaths(pod, context));
  for (const Json& container : *containers) {
    RM_ASSIGN_OR_RETURN(ContainerPlan planned,
                        PlanContainer(container, pod, context, volumes, containers->size() == 1));
    RM_RETURN_IF_ERROR(AddRequests(container, plan.requests));
    plan.containers.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace ringmaster::node

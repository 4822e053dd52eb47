#include "operator/reconcile/worker_pod.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/bind_request.h"
#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/worker_setup.h"
#include "proto/schema/defaults.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;

Json FieldEnv(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

// Sets a variable, replacing one of the same name.
void SetEnv(Json& env, Json variable) {
  for (Json& entry : env) {
    if (entry.value("name", "") == variable["name"]) {
      entry = std::move(variable);
      return;
    }
  }
  env.push_back(std::move(variable));
}

bool HasEnv(const Json& env, std::string_view name) {
  for (const Json& entry : env) {
    if (entry.value("name", "") == name) return true;
  }
  return false;
}

// What is mounted at kCheckpointMount; null for nothing.
Json CheckpointVolume(const Pass& pass) {
  const v1::Checkpoint& checkpoint = pass.spec.checkpoint;
  if (!checkpoint.volume.is_null()) return checkpoint.volume;
  const bool nowhere = !checkpoint.directory && pass.in.settings.checkpoint_directory.empty();
  return pass.Native() && nowhere ? Json{{"emptyDir", Json::object()}} : Json();
}

std::string WorkerConfigJson(const Pass& pass) {
  v1::WorkerConfig config{.trainer = *pass.spec.trainer, .checkpoint = pass.spec.checkpoint};
  if (!CheckpointVolume(pass).is_null()) {
    config.checkpoint.volume = nullptr;
    config.checkpoint.directory = kCheckpointMount;
  } else if (!config.checkpoint.directory) {
    config.checkpoint.directory = pass.in.settings.checkpoint_directory;
  }
  Json said = v1::ToJson(config);
  schema::DropDefaults(v1::SchemaOf<v1::WorkerConfig>(), said);
  return said.dump();
}

// How the launcher starts its program, as the API spells it.
std::string LaunchMode(const Pass& pass) {
  if (pass.Native()) return "Native";
  return v1::ToJson(pass.spec.launch.value_or(v1::Launch{})).value("mode", "Exec");
}

// The launcher kills its program a little before the cluster kills the launcher, which would leave
// no time to tell of the end.
void AddGracePeriod(const Json& spec, Json& env) {
  constexpr std::int64_t kHeadStart = 5;
  const auto grace = spec.find("terminationGracePeriodSeconds");
  if (grace == spec.end() || !grace->is_number_integer()) return;
  if (HasEnv(env, contract::kEnvGraceSeconds)) return;
  const std::int64_t seconds = std::max<std::int64_t>(grace->get<std::int64_t>() - kHeadStart, 1);
  SetEnv(env, {{"name", contract::kEnvGraceSeconds}, {"value", std::to_string(seconds)}});
}

// How the launcher is to bind the trainer's threads; nothing where it is not to.
void AddBinding(const v1::TrainerConfig& trainer, Json& env) {
  if (!trainer.cores || trainer.cores->bind != v1::CoreBinding::kCores) return;
  const BindRequest request{.threads = trainer.threads_per_worker,
                            .communication = trainer.cores->communication};
  SetEnv(env, {{"name", contract::kEnvBind}, {"value", FormatBindRequest(request)}});
}

void AddEnvironment(const Pass& pass, const Json& spec, Json& container) {
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  for (const auto& [name, value] : pass.in.settings.worker_env) {
    if (!HasEnv(env, name)) SetEnv(env, {{"name", name}, {"value", value}});
  }
  SetEnv(env, {{"name", contract::kEnvNamespace}, {"value", pass.ns}});
  SetEnv(env, {{"name", contract::kEnvJob}, {"value", pass.name}});
  SetEnv(env, FieldEnv(contract::kEnvPodName, "metadata.name"));
  SetEnv(env, FieldEnv(contract::kEnvPodUid, "metadata.uid"));
  SetEnv(env, FieldEnv(contract::kEnvPodIp, "status.podIP"));
  SetEnv(env, {{"name", contract::kEnvRendezvous}, {"value", pass.in.settings.rendezvous}});
  if (!pass.in.settings.rendezvous_ca.empty()) {
    SetEnv(env, {{"name", contract::kEnvRendezvousCa}, {"value", pass.in.settings.rendezvous_ca}});
  }
  if (pass.in.settings.worker_tokens) {
    SetEnv(env, {{"name", contract::kEnvTokenFile}, {"value", kTokenFile}});
  }
  SetEnv(env, {{"name", contract::kEnvWorkspace}, {"value", pass.in.settings.workspace}});
  SetEnv(env, {{"name", contract::kEnvLaunchMode}, {"value", LaunchMode(pass)}});
  AddGracePeriod(spec, env);
  if (pass.Native()) {
    SetEnv(env, {{"name", contract::kEnvTrainerConfig}, {"value", WorkerConfigJson(pass)}});
    const std::optional<std::string>& program = pass.spec.trainer->program;
    if (program) SetEnv(env, {{"name", contract::kEnvTrainerBinary}, {"value", *program}});
    AddBinding(*pass.spec.trainer, env);
  }
}

void AddCheckpointVolume(const Pass& pass, Json& spec, Json& container) {
  Json volume = CheckpointVolume(pass);
  if (volume.is_null()) return;
  MountVolume(spec, container, std::move(volume), kCheckpointVolume, kCheckpointMount);
}

// The launcher becomes PID 1 and starts what the template would have started.
void PutLauncherFirst(const Pass& pass, Json& spec, Json& container) {
  const Settings& settings = pass.in.settings;
  const bool install = !pass.Native() && !settings.launcher_image.empty();
  Json command = install ? InstallLauncher(settings, spec, container) : settings.launcher_command;
  if (!pass.Native()) {
    command.push_back("--");
    for (const char* field : {"command", "args"}) {
      if (!container.contains(field)) continue;
      for (const Json& word : container[field]) command.push_back(word);
    }
    container.erase("args");
  }
  container["command"] = std::move(command);
}

Json& WorkerContainer(const Pass& pass, Json& spec) {
  Json& containers = spec["containers"];
  if (!containers.is_array() || containers.empty()) containers = Json::array({Json::object()});
  Json& container = containers.front();
  if (!container.contains("name")) container["name"] = kWorkerContainer;
  if (!container.contains("image")) container["image"] = pass.in.settings.worker_image;
  return container;
}

void SetMetadata(const Pass& pass, int index, int incarnation, Json& pod) {
  Json& metadata = pod["metadata"];
  metadata["name"] = PodName(pass.name, index, incarnation);
  metadata["namespace"] = pass.ns;
  kube::SetLabel(pod, contract::kLabelJob, pass.name);
  kube::SetLabel(pod, contract::kLabelIndex, std::to_string(index));
  kube::SetLabel(pod, contract::kLabelIncarnation, std::to_string(incarnation));
  kube::SetLabel(pod, contract::kLabelManagedBy, kManagedBy);
  const int incidents = pass.status.restarts ? pass.status.restarts->total : 0;
  kube::SetAnnotation(pod, kAnnotationIncidents, std::to_string(incidents));
  kube::AddOwnerReference(pod, OwnerReferenceOf(pass));
}

}  // namespace

std::string WorkerContainerName(const v1::TrainingJobSpec& spec) {
  const Json* containers = kube::Find(spec.workers.template_, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array() || containers->empty())
    return kWorkerContainer;
  const std::string name = kube::FindString(containers->front(), {"name"});
  return name.empty() ? kWorkerContainer : name;
}

Json BuildWorkerPod(const Pass& pass, int index, int incarnation) {
  Json pod = pass.spec.workers.template_.is_object() ? pass.spec.workers.template_ : Json::object();
  pod["apiVersion"] = kube::kPod.ApiVersion();
  pod["kind"] = kube::kPod.kind;
  SetMetadata(pass, index, incarnation, pod);
  Json& spec = pod["spec"];
  spec["restartPolicy"] = "Never";
  if (!pass.Native()) {
    spec["hostname"] = PodName(pass.name, index, incarnation);
    spec["subdomain"] = pass.name;
  }
  if (pass.spec.scheduling.priority_class_name) {
    spec["priorityClassName"] = *pass.spec.scheduling.priority_class_name;
  }
  if (!pass.group.name.empty()) {
    JoinGroup(*pass.in.gang, pass.group.name, pass.in.settings.gang_scheduler, pod);
  }
  LeaveLostNodesSoon(spec);
  const bool templated = kube::Find(spec, {"containers"}) != nullptr;
  Json& container = WorkerContainer(pass, spec);
  if (pass.in.settings.restricted_pods && !templated) Restrict(spec, container);
  PutLauncherFirst(pass, spec, container);
  AddEnvironment(pass, spec, container);
  AddCheckpointVolume(pass, spec, container);
  if (pass.in.settings.worker_tokens) MountToken(spec, container);
  return pod;
}

Json OwnerReferenceOf(const Pass& pass) {
  return kube::OwnerReference(kube::kTrainingJob, Json{{"metadata", pass.in.job.metadata}});
}

}  // namespace ringmaster::reconcile

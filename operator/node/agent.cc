#include "operator/node/agent.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/cpu_list.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::node {
namespace {

using controller::Done;
using controller::ReconcileResult;
using controller::RequeueAfter;
using controller::Retry;
using kube::Json;
using kube::ObjectKey;

constexpr Duration kMissingObjectDelay = std::chrono::seconds(1);
constexpr int kTailLines = 10;
constexpr std::streamoff kTailBytes = 2048;

Resources MachineCapacity() {
  return {static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)),
          static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
              static_cast<double>(::sysconf(_SC_PAGESIZE))};
}

// The last lines of a log, for a termination message. Reads no more than it may keep: a log can be
// larger than memory.
std::string Tail(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return "";
  std::string text(std::min<std::streamoff>(size, kTailBytes), '\0');
  file.seekg(-static_cast<std::streamoff>(text.size()), std::ios::end);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  while (text.ends_with('\n')) text.pop_back();
  size_t start = text.size();
  for (int lines = 0; lines < kTailLines && start != std::string::npos && start > 0; ++lines) {
    start = text.rfind('\n', start - 1);
  }
  return start == std::string::npos || start == 0 ? text : text.substr(start + 1);
}

bool IsOver(const Json& pod) {
  const std::string phase = kube::FindString(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

bool WasStartedBefore(const Json& pod) {
  return kube::Find(pod, {"status", "startTime"}) != nullptr;
}

bool HasStatus(const Json& pod, const Json& status) {
  const Json* stored = kube::Find(pod, {"status"});
  if (stored == nullptr) return false;
  Json merged = *stored;
  kube::MergePatch(merged, status);
  return merged == *stored;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeAgent>> NodeAgent::Create(Options options, kube::Client& client,
                                                             const Clock& clock) {
  RM_RETURN_IF_ERROR(MakeDirectories(options.run_directory + "/logs"));
  RM_RETURN_IF_ERROR(MakeDirectories(options.run_directory + "/volumes"));
  RM_ASSIGN_OR_RETURN(LoopbackSubnet subnet, LoopbackSubnet::Acquire());
  std::unique_ptr<NodeAgent> agent(
      new NodeAgent(std::move(options), client, clock, std::move(subnet)));
  RM_ASSIGN_OR_RETURN(agent->supervisor_,
                      ProcessSupervisor::Create([self = agent.get()](pid_t pid, ProcessExit exit) {
                        self->OnProcessExit(pid, exit);
                      }));
  return agent;
}

NodeAgent::NodeAgent(Options options, kube::Client& client, const Clock& clock,
                     LoopbackSubnet subnet)
    : options_(std::move(options)),
      client_(client),
      clock_(clock),
      subnet_(std::move(subnet)),
      capacity_(options_.capacity.value_or(MachineCapacity())),
      queue_(clock),
      pods_(client, kube::kPod, {}),
      cores_(options_.cores.value_or(ReadCores(AllowedCpus()))) {
  pods_.AddHandler(controller::EnqueueSelf(queue_));
  controller_ = std::make_unique<controller::Controller>(
      controller::Controller::Options{.name = "node", .workers = 1}, queue_, *this, clock_);
  controller_->AddInformer(pods_);
}

NodeAgent::~NodeAgent() {
  Stop();
  supervisor_.reset();
}

absl::Status NodeAgent::Start() {
  return controller_->Start();
}

void NodeAgent::Stop() {
  controller_->Stop();
}

ReconcileResult NodeAgent::Reconcile(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  const auto pod = client_.Get(kube::kPod, key);
  if (!pod.ok() && !absl::IsNotFound(pod.status())) return Retry{pod.status()};
  CollectExits();
  EndOrphans(key, pod.ok() ? kube::Uid(*pod) : "");
  if (!pod.ok()) return Done{};
  const auto local = local_.find(kube::Uid(*pod));
  if (local != local_.end()) {
    return kube::IsDeleting(*pod) ? End(*pod, local->second) : Advance(*pod, local->second);
  }
  if (kube::IsDeleting(*pod)) return controller::RetryIfError(Remove(*pod));
  if (IsOver(*pod)) return Done{};
  if (WasStartedBefore(*pod)) {
    return Settle(
        *pod,
        RefusedStatus("Failed", "NodeLost",
                      "the program that ran this pod's processes ended, and they with it"),
        Done{});
  }
  return Admit(*pod);
}

// A pod that was removed, or removed and created again, while its processes ran.
void NodeAgent::EndOrphans(const ObjectKey& key, const std::string& uid) {
  std::vector<std::string> ended;
  for (auto& [local_uid, local] : local_) {
    if (local.key != key || local_uid == uid) continue;
    for (const LocalContainer& container : local.containers) {
      if (container.running()) supervisor_->SignalGroup(container.pid, SIGKILL);
    }
    if (!local.AnyRunning()) ended.push_back(local_uid);
  }
  for (const std::string& local_uid : ended) Forget(local_uid);
}

ReconcileResult NodeAgent::Admit(const Json& pod) {
  auto ip = subnet_.Take();
  if (!ip.ok()) {
    return Settle(
        pod, WaitingStatus("PodScheduled", "Unschedulable", Message(ip.status()), clock_.Now()),
        Done{});
  }
  const PlanContext context = ContextFor(pod, *ip);
  auto plan = PlanPod(pod, context);
  absl::Status status = plan.status();
  std::string why;
  const bool fits = status.ok() && HasRoomFor(plan->requests, why);
  if (fits) status = MaterialiseVolumes(pod, context);
  if (fits && status.ok()) status = Bind(pod);
  if (!fits || !status.ok()) subnet_.Release(*ip);
  if (absl::IsNotFound(status)) {
    return Settle(pod,
                  WaitingStatus("PodReadyToStartContainers", "CreateContainerConfigError",
                                Message(status), clock_.Now()),
                  RequeueAfter{kMissingObjectDelay});
  }
  if (absl::IsAborted(status)) return Retry{status};
  if (!status.ok())
    return Settle(pod, RefusedStatus("Failed", "Unsupported", Message(status)), Done{});
  if (!fits)
    return Settle(pod, WaitingStatus("PodScheduled", "Unschedulable", why, clock_.Now()), Done{});

  LocalPod& local = local_[kube::Uid(pod)];
  local.key = kube::KeyOf(pod);
  local.uid = kube::Uid(pod);
  local.ip = *ip;
  local.started = clock_.Now();
  for (ContainerPlan& container : plan->containers) {
    cores_.Tell(local.uid, container.process);
    local.containers.push_back({.plan = std::move(container)});
  }
  local.plan = *std::move(plan);
  const auto bound = client_.Get(kube::kPod, local.key);
  if (!bound.ok()) return Retry{bound.status()};
  return Advance(*bound, local);
}

ReconcileResult NodeAgent::Advance(const Json& pod, LocalPod& local) {
  std::optional<Duration> next;
  StartDueContainers(local, next);
  const Json status = StatusOf(local, host_ip());
  const ReconcileResult result =
      Settle(pod, status, next ? ReconcileResult(RequeueAfter{*next}) : Done{});
  const bool over = status["phase"] == "Succeeded" || status["phase"] == "Failed";
  if (over && !std::holds_alternative<Retry>(result)) Forget(local.uid);
  return result;
}

ReconcileResult NodeAgent::End(const Json& pod, LocalPod& local) {
  Duration wait{};
  if (!AskToStop(pod, local, wait))
    return Settle(pod, StatusOf(local, host_ip()), RequeueAfter{wait});
  const ReconcileResult written = Settle(pod, StatusOf(local, host_ip()), Done{});
  if (std::holds_alternative<Retry>(written)) return written;
  const absl::Status removed = Remove(pod);
  if (removed.ok()) Forget(local.uid);
  return controller::RetryIfError(removed);
}

// SIGTERM once, SIGKILL when the grace period is over. True when no process is left; else `wait` is
// how long until the next step.
bool NodeAgent::AskToStop(const Json& pod, LocalPod& local, Duration& wait) {
  if (!local.AnyRunning()) return true;
  const auto now = clock_.SteadyNow();
  const auto grace =
      std::chrono::seconds(kube::FindInt(pod, {"metadata", "deletionGracePeriodSeconds"})
                               .value_or(local.plan.grace_period.count()));
  if (!local.kill_at) {
    for (const LocalContainer& container : local.containers) {
      if (container.running()) supervisor_->Signal(container.pid, SIGTERM);
    }
    local.kill_at = now + grace;
  }
  // A second delete may shorten the grace period.
  local.kill_at = std::min(*local.kill_at, now + grace);
  if (now >= *local.kill_at && !local.killed) {
    for (const LocalContainer& container : local.containers) {
      if (container.running()) supervisor_->SignalGroup(container.pid, SIGKILL);
    }
    local.killed = true;
  }
  wait = std::max(std::chrono::duration_cast<Duration>(*local.kill_at - now),
                  Duration(std::chrono::milliseconds(100)));
  return false;
}

void NodeAgent::StartDueContainers(LocalPod& local, std::optional<Duration>& next) {
  for (LocalContainer& container : local.containers) {
    if (container.running()) continue;
    if (container.ended && !WantsRestart(local.plan.restart_policy, container)) continue;
    const Duration waited =
        container.ended ? clock_.Now() - container.ended->finished : Duration::max();
    const Duration delay = RestartDelay(container.restarts);
    if (container.ended && waited < delay) {
      next = std::min(next.value_or(delay), delay - waited);
      continue;
    }
    StartContainer(local, container);
  }
}

void NodeAgent::StartContainer(LocalPod& local, LocalContainer& container) {
  if (container.ended) ++container.restarts;
  container.started = clock_.Now();
  const auto pid = supervisor_->Start(container.plan.process);
  if (pid.ok()) {
    container.pid = *pid;
    std::lock_guard lock(exits_mutex_);
    owners_[*pid] = local.key;
    if (exits_.contains(*pid)) queue_.Add(local.key);  // it ended before it had an owner
    container.start_error.reset();
    log::Debug("container started",
               {{"pod", local.key.ToString()}, {"container", container.plan.name}, {"pid", *pid}});
    return;
  }
  // As a container runtime reports a command that it cannot run.
  const std::string message = Message(pid.status());
  log::Warning(
      "container cannot be started",
      {{"pod", local.key.ToString()}, {"container", container.plan.name}, {"error", message}});
  container.start_error = message;
  container.ended =
      Termination{{.exit_code = 127, .signal = 0}, container.started, clock_.Now(), message};
}

// On the supervisor's thread, which a pass may be waiting for with mutex_ held: it must not take
// that one.
void NodeAgent::OnProcessExit(pid_t pid, ProcessExit exit) {
  std::lock_guard lock(exits_mutex_);
  exits_[pid] = {exit, clock_.Now()};
  const auto owner = owners_.find(pid);
  if (owner != owners_.end()) queue_.Add(owner->second);
}

void NodeAgent::CollectExits() {
  std::lock_guard lock(exits_mutex_);
  for (auto& [uid, local] : local_) {
    for (LocalContainer& container : local.containers) {
      const auto ended = exits_.find(container.pid);
      if (!container.running() || ended == exits_.end()) continue;
      const auto& [exit, time] = ended->second;
      container.ended =
          Termination{exit, container.started, time,
                      exit.exit_code == 0 ? "" : Tail(container.plan.process.log_path)};
      owners_.erase(container.pid);
      exits_.erase(ended);
      container.pid = 0;
    }
  }
}

void NodeAgent::Forget(const std::string& uid) {
  const auto local = local_.find(uid);
  if (local == local_.end()) return;
  subnet_.Release(local->second.ip);
  cores_.Release(uid);
  local_.erase(local);
  // There is room again: pods that wait for it get another look.
  for (const kube::ObjectPtr& pod : pods_.List()) {
    if (kube::FindString(*pod, {"status", "phase"}) == "Pending") queue_.Add(kube::KeyOf(*pod));
  }
}

bool NodeAgent::HasRoomFor(const Resources& requests, std::string& why) {
  Resources used;
  for (const auto& [uid, local] : local_) {
    used.cpus += local.plan.requests.cpus;
    used.memory_bytes += local.plan.requests.memory_bytes;
  }
  if (used.cpus + requests.cpus > capacity_.cpus) {
    why = fmt::format(
        "0/1 nodes are available: the pod requests cpu {:g}, {:g} of this machine's {:g} are free",
        requests.cpus, capacity_.cpus - used.cpus, capacity_.cpus);
  } else if (used.memory_bytes + requests.memory_bytes > capacity_.memory_bytes) {
    why = fmt::format(
        "0/1 nodes are available: the pod requests {:.0f} MiB of memory, {:.0f} of this machine's "
        "{:.0f} are free",
        requests.memory_bytes / (1 << 20), (capacity_.memory_bytes - used.memory_bytes) / (1 << 20),
        capacity_.memory_bytes / (1 << 20));
  }
  return why.empty();
}

PlanContext NodeAgent::ContextFor(const Json& pod, const std::string& ip) {
  PlanContext context;
  context.pod_ip = ip;
  context.host_ip = host_ip();
  context.node_name = options_.name;
  context.bin_directory = options_.bin_directory;
  context.workspace = options_.workspace;
  context.log_directory = options_.run_directory + "/logs";
  context.volume_directory = fmt::format("{}/volumes/{}", options_.run_directory, kube::Uid(pod));
  context.environment = options_.environment;
  context.read = [this, ns = kube::Namespace(pod)](const kube::ResourceType& type,
                                                   const std::string& name) {
    return client_.Get(type, {ns, name});
  };
  return context;
}

absl::Status NodeAgent::Bind(const Json& pod) {
  const Json patch = {{"metadata", {{"resourceVersion", kube::ResourceVersion(pod)}}},
                      {"spec", {{"nodeName", options_.name}}}};
  return client_.Patch(kube::kPod, kube::KeyOf(pod), patch).status();
}

ReconcileResult NodeAgent::Settle(const Json& pod, const Json& status, ReconcileResult otherwise) {
  const absl::Status written = WriteStatus(pod, status);
  return written.ok() ? otherwise : ReconcileResult(Retry{written});
}

absl::Status NodeAgent::WriteStatus(const Json& pod, const Json& status) {
  if (HasStatus(pod, status)) return absl::OkStatus();
  return client_.PatchStatus(kube::kPod, kube::KeyOf(pod), status, kube::ResourceVersion(pod))
      .status();
}

absl::Status NodeAgent::Remove(const Json& pod) {
  const absl::Status status =
      client_.Delete(kube::kPod, kube::KeyOf(pod),
                     {.uid = kube::Uid(pod), .grace_period = std::chrono::seconds(0)});
  std::error_code ignored;
  std::filesystem::remove_all(fmt::format("{}/volumes/{}", options_.run_directory, kube::Uid(pod)),
                              ignored);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace ringmaster::node

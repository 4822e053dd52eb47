#include "operator/cluster/cluster_operator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/host_port.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "operator/cluster/preflight.h"
#include "operator/cluster/rendezvous_secret.h"

namespace ringmaster::cluster {
namespace {

using controller::LeaderElector;

// How often the runner looks at the election's standing: what a change of it is late by.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr Duration kFirstPause = std::chrono::milliseconds(500);
constexpr Duration kLongestPause = std::chrono::seconds(10);
// A definition that is not found must be missed as often as this, and is looked for this soon.
constexpr int kMissedBeforeGone = 3;
constexpr Duration kLookForMissing = std::chrono::seconds(1);

std::string RandomHex() {
  const std::string bytes = RandomBytes(4);
  return Hex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

constexpr char kAutoGang[] = "auto";

absl::Status CheckGangName(const std::string& name) {
  if (name == kAutoGang || name == "none") return absl::OkStatus();
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    if (name == api.name) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("--gang-scheduling {}: it is auto, none, native, volcano or coscheduling", name));
}

// Whether the same may work in a moment.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsInternal(status) || absl::IsAborted(status);
}

}  // namespace

ClusterOperator::ClusterOperator(ClusterOptions options, Clients clients, const Clock& clock)
    : options_(std::move(options)),
      clients_(clients),
      clock_(clock),
      identity_(fmt::format("{}_{}", options_.pod, RandomHex())),
      leading_(registry_.AddGauge("ringmaster_operator_leading",
                                  "1 while this operator leads, else 0.")),
      verifier_([this](const kube::ObjectKey& key) -> kube::ObjectPtr {
        const manager::Manager* manager = live_manager_;
        return manager == nullptr ? nullptr : manager->pods().Get(key);
      }),
      definition_gone_(kMissedBeforeGone, options_.definition_gone_after, clock) {}

ClusterOperator::~ClusterOperator() {
  Stop();
}

absl::StatusOr<std::unique_ptr<ClusterOperator>> ClusterOperator::Start(ClusterOptions options,
                                                                        Clients clients,
                                                                        const Clock& clock) {
  if (options.host.empty() && options.rendezvous_endpoint.empty()) {
    return absl::InvalidArgumentError(
        "workers could not find this operator: give --host or --rendezvous-endpoint");
  }
  std::unique_ptr<ClusterOperator> made(new ClusterOperator(std::move(options), clients, clock));
  RM_RETURN_IF_ERROR(made->ElectionOptions().Validate());
  RM_RETURN_IF_ERROR(CheckGangName(made->options_.gang));
  RM_RETURN_IF_ERROR(made->OpenEndpoints());
  made->runner_ = std::thread([op = made.get()] { op->Run(); });
  return made;
}

controller::LeaderElectionOptions ClusterOperator::ElectionOptions() const {
  return {.lease = {options_.own_ns, options_.name},
          .identity = identity_,
          .address = OwnRendezvous(),
          .lease_duration = options_.lease_duration,
          .renew_deadline = options_.renew_deadline,
          .retry_period = options_.retry_period,
          .seed = std::hash<std::string>()(identity_)};
}

absl::Status ClusterOperator::OpenEndpoints() {
  const WebPage alive = HealthPage([] { return absl::OkStatus(); });
  const WebPage ready = HealthPage([this] { return CheckReady(); });
  std::map<std::string, WebPage> pages{{"/healthz", alive}, {"/readyz", ready}};
  if (!options_.health_address.empty()) {
    RM_ASSIGN_OR_RETURN(health_, WebServer::Start(options_.health_address, pages));
  }
  if (options_.metrics_address.empty()) return absl::OkStatus();
  pages["/metrics"] = metrics::MetricsPage(registry_);
  RM_ASSIGN_OR_RETURN(web_, WebServer::Start(options_.metrics_address, std::move(pages)));
  return absl::OkStatus();
}

absl::Status ClusterOperator::CheckReady() {
  const std::lock_guard lock(mutex_);
  if (ended_) return *ended_;
  if (waits_for_.empty()) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("waits for {}", waits_for_));
}

void ClusterOperator::Run() {
  if (!Try("the cluster", [this] { return CheckCluster(); }) ||
      !Try("the rendezvous", [this] { return OpenRendezvous(); })) {
    return;
  }
  next_look_ = clock_.SteadyNow() + options_.look_at_definition;
  WaitFor("");
  if (options_.leader_elect) {
    StandForElection();
  } else {
    Lead();
  }
  while (Pause(kLookEvery)) {
    if (manager_ == nullptr && !FollowElection()) return;
    LookAtDefinition();
  }
}

bool ClusterOperator::FollowElection() {
  const LeaderElector::Standing standing = elector_->standing();
  if (standing == LeaderElector::Standing::kLost) return false;  // Ended says so
  if (standing == LeaderElector::Standing::kLeading) {
    Lead();
    return true;
  }
  const LeaderElector::Leader leader = elector_->leader();
  if (leader != told_) rendezvous_->StandBy(leader.address);
  told_ = leader;
  return true;
}

// By the election's client, which does not wait for long: this thread has more to look at.
void ClusterOperator::LookAtDefinition() {
  if (clock_.SteadyNow() < next_look_) return;
  Duration wait = options_.look_at_definition;
  const absl::Status found = CheckDefinition(clients_.election);
  if (absl::IsNotFound(found)) {
    log::Warning("the definition was not found, will look again", {{"error", found}});
    wait = std::min(wait, kLookForMissing);
  }
  const absl::Status current = BelieveGone(found);
  if (absl::IsFailedPrecondition(current)) End(current);
  next_look_ = clock_.SteadyNow() + wait;
}

absl::Status ClusterOperator::BelieveGone(const absl::Status& found) {
  if (!absl::IsNotFound(found)) {
    definition_gone_.Break();
    return found;
  }
  if (!definition_gone_.Again()) return absl::UnavailableError(found.message());
  return absl::FailedPreconditionError(found.message());
}

absl::Status ClusterOperator::ConfirmDefinition() {
  const absl::Status current = CheckDefinition(clients_.work);
  if (absl::IsFailedPrecondition(current)) End(current);
  return absl::IsPermissionDenied(current) ? absl::OkStatus() : current;
}

bool ClusterOperator::Try(const std::string& what, const std::function<absl::Status()>& attempt) {
  WaitFor(what);
  Duration pause = kFirstPause;
  do {
    const absl::Status status = attempt();
    if (status.ok()) return true;
    if (!MayPass(status)) {
      End(status);
      return false;
    }
    log::Warning("not begun yet, will retry", {{"waits_for", what}, {"error", status}});
    pause = std::min(pause * 2, kLongestPause);
  } while (Pause(pause));
  return false;
}

absl::Status ClusterOperator::CheckCluster() {
  RM_RETURN_IF_ERROR(BelieveGone(CheckCustomResource(clients_.work, options_.ns)));
  RM_RETURN_IF_ERROR(CheckPermissions(
      clients_.work, NeededPermissions(options_.ns, options_.own_ns, options_.name, SecretName())));
  return CheckGangs();
}

// One that was named must be allowed; of the others those that are.
absl::Status ClusterOperator::CheckGangs() {
  gangs_.clear();
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    if (options_.gang != kAutoGang && options_.gang != api.name) continue;
    const absl::Status allowed = CheckGang(clients_.work, api, options_.ns);
    if (options_.gang == kAutoGang && absl::IsPermissionDenied(allowed)) {
      log::Info("gang scheduler not used: no rights",
                {{"name", std::string(api.name)}, {"error", allowed}});
      continue;
    }
    RM_RETURN_IF_ERROR(allowed);
    gangs_.push_back(&api);
  }
  return absl::OkStatus();
}

absl::Status ClusterOperator::OpenRendezvous() {
  RM_ASSIGN_OR_RETURN(
      RendezvousSecret secret,
      LoadOrCreateRendezvousSecret(clients_.work, {options_.own_ns, SecretName()}, clock_));
  rendezvous::Server::Options server;
  server.address = options_.rendezvous_address;
  server.secret = std::move(secret.round_secret);
  server.reviewer = &clients_.reviewer;
  server.certificate = std::move(secret.certificate);
  server.stand_by = true;
  const auto changed = [this](const kube::ObjectKey& job) {
    if (manager::Manager* manager = live_manager_) manager->Enqueue(job);
  };
  auto opened = rendezvous::Server::Start(std::move(server), clock_, verifier_, changed);
  // A port that is taken stays so: whoever has it must be looked for.
  if (!opened.ok())
    return absl::FailedPreconditionError(fmt::format("rendezvous: {}", Message(opened.status())));
  rendezvous_ = *std::move(opened);
  rendezvous_port_ = rendezvous_->port();
  authority_pem_ = std::move(secret.ca_pem);
  return absl::OkStatus();
}

void ClusterOperator::StandForElection() {
  {
    const std::lock_guard lock(mutex_);
    elector_ = std::make_unique<LeaderElector>(ElectionOptions(), clients_.election, clock_);
  }
  log::Info("standing by", {{"identity", identity_}, {"rendezvous", OwnRendezvous()}});
  election_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!resigning_) {
      lock.unlock();
      const Duration pause = elector_->Step();
      lock.lock();
      changed_.wait_for(lock, pause, [this] { return resigning_; });
    }
  });
}

void ClusterOperator::Lead() {
  manager_ = std::make_unique<manager::Manager>(MakeManagerOptions(), clients_.work,
                                                rendezvous_->link(), clock_);
  live_manager_ = manager_.get();
  leading_.Set(1);
  // Workers only when the caches can tell which pods there are. Until then the rendezvous says that
  // it has not been there for long, so no pass takes a worker for lost.
  if (const absl::Status started = manager_->Start(); !started.ok()) return End(started);
  rendezvous_->Activate();
  leads_ = true;
  const reconcile::GangApi* gang = manager_->gang();
  log::Info("leading: reconciles and takes workers in",
            {{"identity", identity_},
             {"jobs", manager_->jobs().Size()},
             {"gang_scheduler", gang == nullptr ? "none" : std::string(gang->name)}});
}

manager::ManagerOptions ClusterOperator::MakeManagerOptions() {
  manager::ManagerOptions options;
  options.ns = options_.ns;
  options.settings = options_.settings;
  options.settings.rendezvous =
      options_.rendezvous_endpoint.empty() ? OwnRendezvous() : options_.rendezvous_endpoint;
  options.settings.rendezvous_ca = authority_pem_;
  options.settings.worker_tokens = true;
  options.settings.restricted_pods = true;
  options.settings.checkpoint_directory.clear();
  options.gang_apis = gangs_;
  options.workers = options_.concurrent_jobs;
  options.parallel_writes = options_.parallel_writes;
  options.small_caches = true;
  options.status_interval = options_.status_interval;
  options.gather = options_.gather;
  options.on_pass = [this](Duration own, bool called) { metrics_.OnPass(own, called); };
  options.events_beside = true;
  options.on_event = [this](std::string_view outcome) { metrics_.OnEvent(outcome); };
  options.observer = &metrics_;
  options.confirm = [this] { return ConfirmDefinition(); };
  options.on_job = [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    metrics_.OnJob(before, after);
  };
  return options;
}

std::string ClusterOperator::SecretName() const {
  return options_.name + "-rendezvous";
}

std::string ClusterOperator::OwnRendezvous() const {
  const std::string& host = options_.host;
  if (host.empty()) return "";
  return JoinHostPort(host, rendezvous_port_.load());
}

std::optional<absl::Status> ClusterOperator::Ended() {
  const std::lock_guard lock(mutex_);
  if (ended_ || stopping_ || elector_ == nullptr) return ended_;
  if (elector_->standing() == LeaderElector::Standing::kLost) {
    leads_ = false;
    rendezvous_->StandBy("");
    ended_ = absl::AbortedError("leadership lost");
  }
  return ended_;
}

void ClusterOperator::End(const absl::Status& why) {
  const std::lock_guard lock(mutex_);
  if (!stopping_ && !ended_) ended_ = why;
}

void ClusterOperator::WaitFor(const std::string& what) {
  const std::lock_guard lock(mutex_);
  waits_for_ = what;
}

bool ClusterOperator::Pause(Duration duration) {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return stopping_ || ended_; };
  changed_.wait_for(lock, duration, over);
  return !over();
}

void ClusterOperator::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waits_for_ = "nothing: it stops";
  }
  changed_.notify_all();
  if (runner_.joinable()) runner_.join();
  if (manager_ != nullptr) manager_->Stop();
  live_manager_ = nullptr;
  rendezvous_.reset();
  leads_ = false;
  leading_.Set(0);
  // Only now: the next leader begins at once.
  {
    const std::lock_guard lock(mutex_);
    resigning_ = true;
  }
  changed_.notify_all();
  if (election_.joinable()) {
    election_.join();
    if (const absl::Status released = elector_->Release(); !released.ok())
      log::Warning("the lease was not released: the next leader waits for its end",
                   {{"error", released}});
  }
  if (manager_ != nullptr) manager_->WriteEvents();
}

}  // namespace ringmaster::cluster

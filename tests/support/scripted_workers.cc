#include "tests/support/scripted_workers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::testing {
namespace {

namespace v1 = rendezvous::v1;

std::string Steps(const auto& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const v1::CheckpointRef& checkpoint : checkpoints) steps.push_back(checkpoint.step());
  return fmt::format("{}", fmt::join(steps, ", "));
}

std::string Describe(const v1::Command& command) {
  if (command.has_drain()) return fmt::format("drain, {}", command.drain().reason());
  if (command.has_stop()) return fmt::format("stop, {}", command.stop().reason());
  if (command.has_checkpoint_now()) return "checkpoint now";
  const v1::CheckpointCommitted& committed = command.checkpoint_committed();
  std::string text = fmt::format("checkpoint {} is committed", committed.checkpoint().step());
  if (committed.dropped_size() > 0) text += fmt::format("; drop {}", Steps(committed.dropped()));
  return text;
}

// One round as its members were told it, by rank; in one line.
std::string DescribeRound(std::vector<v1::Round> told) {
  std::ranges::sort(told, {}, &v1::Round::rank);
  std::vector<std::string> members;
  for (const v1::Round& round : told)
    members.push_back(fmt::format("{}={}", round.rank(), round.members(round.rank()).pod()));
  const v1::Round& round = told.front();
  std::string text = fmt::format("announce round {} to {}; shards {}", round.number(),
                                 fmt::join(members, " "), round.shards());
  if (round.checkpoints_size() > 0)
    text += fmt::format("; checkpoints {}", Steps(round.checkpoints()));
  return text;
}

}  // namespace

// A worker's end of its stream. It prints commands and refusals; rounds and the end are kept for
// Settle, for the registry may not be called back from here.
class ScriptedWorkers::Line : public rendezvous::Downstream {
 public:
  Line(std::string pod, std::string& log) : pod_(std::move(pod)), log_(log) {}

  void Send(const v1::ToWorker& message) override {
    if (ended_) return;
    if (message.has_refused()) {
      log_ +=
          fmt::format("refuse {}{}: {}\n", pod_, message.refused().permanent() ? " for good" : "",
                      message.refused().reason());
    }
    if (!message.has_command()) return;
    if (message.command().has_round()) {
      rounds_.push_back(message.command().round());
    } else {
      committed_ =
          std::max(committed_, message.command().checkpoint_committed().checkpoint().step());
      log_ += fmt::format("tell {}: {}\n", pod_, Describe(message.command()));
    }
  }
  void End(const absl::Status& status) override {
    ended_ = true;
    ended_well_ = status.ok();
  }

  std::vector<v1::Round> TakeRounds() { return std::exchange(rounds_, {}); }
  std::int64_t committed() const { return committed_; }  // a checkpoint's step; 0 for none
  bool ended() const { return ended_; }
  bool ended_well() const { return ended_well_; }

 private:
  const std::string pod_;
  std::string& log_;
  std::vector<v1::Round> rounds_;
  std::int64_t committed_ = 0;
  bool ended_ = false;
  bool ended_well_ = false;
};

ScriptedWorkers::ScriptedWorkers(const Clock& clock, kube::Client& api, std::string& log,
                                 std::function<void(const kube::ObjectKey&)> changed)
    : clock_(clock),
      api_(api),
      log_(log),
      changed_(std::move(changed)),
      verifier_([this](const kube::ObjectKey& key) -> kube::ObjectPtr {
        auto pod = api_.Get(kube::kPod, key);
        return pod.ok() ? std::make_shared<const kube::Json>(*std::move(pod)) : nullptr;
      }),
      registry_(MakeRegistry()) {}

ScriptedWorkers::~ScriptedWorkers() = default;

std::unique_ptr<rendezvous::Registry> ScriptedWorkers::MakeRegistry() {
  return std::make_unique<rendezvous::Registry>(
      rendezvous::Registry::Options{rendezvous::Timing{}, "secret", nullptr}, clock_, verifier_,
      changed_);
}

void ScriptedWorkers::Reset() {
  for (auto& [pod, worker] : workers_) {
    if (worker.line != nullptr) worker.cut = !worker.silent;
    worker.line = nullptr;
  }
  registry_ = MakeRegistry();
}

void ScriptedWorkers::Join(const rendezvous::WorkerIdentity& identity, bool native,
                           const std::string& address, const std::string& kernels_digest) {
  Worker& worker = workers_[{identity.job.ns, identity.pod}];
  if (worker.identity.pod_uid != identity.pod_uid) {
    HangUp(worker);
    worker = {.identity = identity};
  }
  worker.native = native;
  worker.address = address;
  worker.silent = false;
  if (!kernels_digest.empty()) worker.kernels_digest = kernels_digest;
  if (native) {
    v1::Event ready;
    ready.mutable_ready()->set_address(address);
    ready.mutable_ready()->set_kernels_digest(worker.kernels_digest);
    worker.outbox.Add(std::move(ready));
  }
  Dial(worker);
}

void ScriptedWorkers::DialAgain() {
  for (auto& [pod, worker] : workers_) {
    if (worker.cut && HasProcess(pod, worker)) Dial(worker);
  }
}

void ScriptedWorkers::Dial(Worker& worker) {
  const auto older = worker.line == nullptr ? 0 : worker.stream;
  worker.cut = false;
  worker.line = std::make_shared<Line>(worker.identity.pod, log_);
  worker.stream = registry_->Opened(worker.line, "script");
  SayHello(worker);
  if (older != 0) registry_->Closed(older);
  worker.outbox.Rewind();
  TellAll(worker);
  if (worker.left) registry_->HalfClosed(worker.stream);
  Settle();
}

void ScriptedWorkers::TellAll(Worker& worker) {
  while (const std::optional<v1::Event> event = worker.outbox.Next()) {
    v1::FromWorker message;
    *message.mutable_event() = *event;
    registry_->Received(worker.stream, message);
  }
}

void ScriptedWorkers::SayHello(const Worker& worker) {
  v1::FromWorker message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_namespace_(worker.identity.job.ns);
  hello.set_job(worker.identity.job.name);
  hello.set_pod(worker.identity.pod);
  hello.set_pod_uid(worker.identity.pod_uid);
  hello.set_native(worker.native);
  if (!worker.native) hello.set_address(worker.address);
  hello.set_round(worker.round);
  hello.set_leaving(worker.leaving);
  registry_->Received(worker.stream, message);
}

void ScriptedWorkers::SendHeartbeat(const Worker& worker) {
  v1::FromWorker message;
  message.mutable_heartbeat()->set_round(worker.round);
  registry_->Received(worker.stream, message);
}

void ScriptedWorkers::HangUp(Worker& worker) {
  if (worker.line == nullptr) return;
  worker.line = nullptr;
  registry_->Closed(worker.stream);
}

ScriptedWorkers::Worker* ScriptedWorkers::FindConnected(const kube::ObjectKey& pod) {
  const auto found = workers_.find(pod);
  return found == workers_.end() || found->second.line == nullptr ? nullptr : &found->second;
}

void ScriptedWorkers::Leave(const kube::ObjectKey& pod) {
  if (Worker* worker = FindConnected(pod)) HangUp(*worker);
}

void ScriptedWorkers::FallSilent(const kube::ObjectKey& pod) {
  if (Worker* worker = FindConnected(pod)) worker->silent = true;
}

absl::Status ScriptedWorkers::Say(const kube::ObjectKey& pod, const v1::Event& event) {
  Worker* worker = FindConnected(pod);
  if (worker == nullptr || worker->silent || worker->left) {
    return absl::FailedPreconditionError(
        fmt::format("the worker of {} is not connected, or silent", pod.name));
  }
  worker->outbox.Add(event);
  TellAll(*worker);
  worker->left = event.has_exited();
  worker->leaving = worker->leaving || worker->left || event.has_drain_requested();
  if (worker->left) registry_->HalfClosed(worker->stream);
  Settle();
  return absl::OkStatus();
}

std::int64_t ScriptedWorkers::RoundOf(const kube::ObjectKey& pod) const {
  const auto found = workers_.find(pod);
  return found == workers_.end() ? 0 : found->second.round;
}

std::vector<std::string> ScriptedWorkers::Connected(const kube::ObjectKey& job) const {
  std::vector<std::string> pods;
  for (const auto& [pod, worker] : workers_) {
    const bool speaks = worker.line != nullptr && !worker.silent && !worker.left;
    if (worker.identity.job == job && speaks) pods.push_back(pod.name);
  }
  return pods;
}

bool ScriptedWorkers::HasLeft(const kube::ObjectKey& pod) const {
  const auto found = workers_.find(pod);
  return found != workers_.end() && found->second.left;
}

bool ScriptedWorkers::WaitsToLeave(const kube::ObjectKey& pod) const {
  return HasLeft(pod) && !workers_.at(pod).let_go;
}

void ScriptedWorkers::BuryTheDead() {
  for (auto& [pod, worker] : workers_) {
    if (worker.line != nullptr && !HasProcess(pod, worker)) HangUp(worker);
  }
}

bool ScriptedWorkers::HasProcess(const kube::ObjectKey& pod, const Worker& worker) {
  const auto object = api_.Get(kube::kPod, pod);
  const std::string phase = object.ok() ? kube::FindString(*object, {"status", "phase"}) : "";
  const bool ended = phase == "Succeeded" || phase == "Failed";
  return object.ok() && kube::Uid(*object) == worker.identity.pod_uid && !ended;
}

void ScriptedWorkers::Beat() {
  for (auto& [pod, worker] : workers_) {
    if (worker.line != nullptr && !worker.silent && !worker.left) SendHeartbeat(worker);
  }
  registry_->Tick();
  Settle();
}

void ScriptedWorkers::Settle() {
  std::vector<v1::Round> told;
  for (auto& [pod, worker] : workers_) {
    if (worker.line == nullptr) continue;
    for (v1::Round& round : worker.line->TakeRounds()) {
      if (!worker.silent) {
        worker.round = std::max<std::int64_t>(worker.round, round.number());
        worker.outbox.EnterRound(worker.round);
        SendHeartbeat(worker);
      }
      told.push_back(std::move(round));
    }
    worker.outbox.ForgetShardsUpTo(worker.line->committed());
    worker.let_go = worker.left && worker.line->ended_well();
    if (worker.line->ended()) HangUp(worker);
  }
  if (!told.empty()) log_ += fmt::format("{}\n", DescribeRound(std::move(told)));
}

reconcile::WorkersView ScriptedWorkers::SnapshotFor(const kube::ObjectKey& job) {
  return registry_->SnapshotFor(job);
}

void ScriptedWorkers::Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) {
  registry_->Announce(job, round);
  Settle();
}

void ScriptedWorkers::Send(const kube::ObjectKey& job, const std::string& pod_uid,
                           const reconcile::WorkerCommand& command) {
  registry_->Send(job, pod_uid, command);
  Settle();
}

void ScriptedWorkers::LetGo(const kube::ObjectKey& job, const std::string& pod_uid) {
  registry_->LetGo(job, pod_uid);
  Settle();
}

void ScriptedWorkers::Forget(const kube::ObjectKey& job) {
  registry_->Forget(job);
  Settle();
}

}  // namespace ringmaster::testing

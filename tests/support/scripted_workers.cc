#include "tests/support/scripted_workers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::testing {
namespace {

std::string Steps(const std::vector<reconcile::CheckpointRef>& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const reconcile::CheckpointRef& checkpoint : checkpoints) steps.push_back(checkpoint.step);
  return fmt::format("{}", fmt::join(steps, ", "));
}

std::string Describe(const reconcile::WorkerCommand& command) {
  if (const auto* drain = std::get_if<reconcile::DrainCommand>(&command)) {
    return fmt::format("drain, {}", drain->reason);
  }
  if (const auto* stop = std::get_if<reconcile::StopCommand>(&command)) {
    return fmt::format("stop, {}", stop->reason);
  }
  if (const auto* committed = std::get_if<reconcile::CheckpointCommittedCommand>(&command)) {
    std::string text = fmt::format("checkpoint {} is committed", committed->checkpoint.step);
    if (!committed->dropped.empty()) text += fmt::format("; drop {}", Steps(committed->dropped));
    return text;
  }
  return "checkpoint now";
}

bool IsFinal(const reconcile::WorkerCommand& command) {
  return std::holds_alternative<reconcile::DrainCommand>(command) ||
         std::holds_alternative<reconcile::StopCommand>(command);
}

}  // namespace

ScriptedWorkers::ScriptedWorkers(const Clock& clock, std::string& log,
                                 std::function<void(const kube::ObjectKey&)> changed)
    : clock_(clock), log_(log), changed_(std::move(changed)), since_(clock.Now()) {}

void ScriptedWorkers::Join(const kube::ObjectKey& job, const std::string& pod,
                           const std::string& uid, const std::string& address, std::int64_t round) {
  reconcile::WorkerView& view = jobs_[job][uid];
  view.pod = pod;
  view.pod_uid = uid;
  view.connected = true;
  view.disconnected_at.reset();
  view.last_heard = clock_.Now();
  view.round = std::max(view.round, round);
  view.ready = reconcile::ReadyReport{.address = address};
  final_command_.erase(uid);
  changed_(job);
}

void ScriptedWorkers::Leave(const kube::ObjectKey& job, const std::string& pod) {
  Change(job, pod, [&](reconcile::WorkerView& view) {
    view.connected = false;
    view.disconnected_at = clock_.Now();
  });
}

bool ScriptedWorkers::Change(const kube::ObjectKey& job, const std::string& pod,
                             const std::function<void(reconcile::WorkerView&)>& change) {
  bool found = false;
  for (auto& [uid, view] : jobs_[job]) {
    if (view.pod != pod) continue;
    view.last_heard = clock_.Now();
    change(view);
    found = true;
  }
  if (found) changed_(job);
  return found;
}

std::vector<std::string> ScriptedWorkers::Connected(const kube::ObjectKey& job) const {
  std::vector<std::string> pods;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return pods;
  for (const auto& [uid, view] : found->second) {
    if (view.connected) pods.push_back(view.pod);
  }
  std::sort(pods.begin(), pods.end());
  return pods;
}

void ScriptedWorkers::Reset() {
  jobs_.clear();
  final_command_.clear();
  since_ = clock_.Now();
}

reconcile::WorkersView ScriptedWorkers::SnapshotFor(const kube::ObjectKey& job) {
  reconcile::WorkersView snapshot{.since = since_};
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return snapshot;
  for (const auto& [uid, view] : found->second) snapshot.workers.push_back(view);
  return snapshot;
}

void ScriptedWorkers::Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) {
  std::vector<std::string> told;
  for (const reconcile::RoundMember& member : round.members) {
    const auto worker = jobs_[job].find(member.pod_uid);
    if (worker == jobs_[job].end() || !worker->second.connected) continue;
    if (worker->second.round >= round.round) continue;
    worker->second.round = round.round;
    told.push_back(fmt::format("{}={}", member.rank, member.pod));
  }
  if (told.empty()) return;
  log_ += fmt::format("announce round {} to {}; shards {}", round.round, fmt::join(told, " "),
                      round.shards);
  if (!round.checkpoints.empty()) log_ += fmt::format("; checkpoints {}", Steps(round.checkpoints));
  log_ += "\n";
}

void ScriptedWorkers::Send(const kube::ObjectKey& job, const std::string& pod_uid,
                           const reconcile::WorkerCommand& command) {
  const auto worker = jobs_[job].find(pod_uid);
  if (worker == jobs_[job].end() || !worker->second.connected) return;
  const std::string text = Describe(command);
  if (IsFinal(command) && std::exchange(final_command_[pod_uid], text) == text) return;
  log_ += fmt::format("tell {}: {}\n", worker->second.pod, text);
}

void ScriptedWorkers::Forget(const kube::ObjectKey& job) {
  jobs_.erase(job);
}

}  // namespace ringmaster::testing

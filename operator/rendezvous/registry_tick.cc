// What the registry does by the time: heartbeats, time-outs, progress held back, pods that went.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/log.h"
#include "operator/rendezvous/registry.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::rendezvous {
namespace {

constexpr Duration kPruneInterval = std::chrono::seconds(5);
// Longer than a launcher waits to be let go: whoever does not end its stream by then is gone.
constexpr Duration kLeavingPatience = std::chrono::minutes(2);
// A Hello that waits for longer is not answered as fast as it would be on a good day.
constexpr Duration kPromptAnswer = std::chrono::seconds(2);
// For so long at most Hellos that wait excuse absence where every check comes to an end: else
// somebody who says one Hello after the other would keep all the dead in place.
constexpr Duration kLongestLine = std::chrono::minutes(10);

}  // namespace

void Registry::Tick() {
  Keys changed;
  bool prune = false;
  {
    std::lock_guard lock(mutex_);
    const SteadyTime now = clock_.SteadyNow();
    ForgiveLateTick(now);
    NoteTheWaiting(now);
    EndSilent(now, &changed);
    SendHeartbeats(now);
    TellHeldBackProgress(now, &changed);
    prune = now - last_prune_ >= kPruneInterval;
    if (prune) last_prune_ = now;
  }
  Notify(changed);
  if (prune) PruneGonePods();
}

void Registry::ForgiveLateTick(SteadyTime now) {
  const auto gap = now - last_tick_;
  last_tick_ = now;
  if (gap <= 2 * options_.timing.heartbeat) return;
  for (auto& [id, stream] : streams_) stream.heard += gap;
}

// Others may wait behind the one that waits for long, and their launchers may have given up.
void Registry::NoteTheWaiting(SteadyTime now) {
  const bool late = std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    return entry.second.waits && now - *entry.second.waits >= kPromptAnswer;
  });
  if (!late) return line_since_.reset();
  if (!line_since_) line_since_ = now;
  if (now - *line_since_ < kLongestLine) deaf_ = clock_.Now();
}

void Registry::EndSilent(SteadyTime now, Keys* changed) {
  std::vector<StreamId> silent;
  for (const auto& [id, stream] : streams_) {
    if (stream.waits) continue;  // it is ours to speak
    // Who has closed its side can say no more that it is there.
    const Duration patience = stream.said_all ? kLeavingPatience : options_.timing.timeout;
    if (now - stream.heard >= patience) silent.push_back(id);
  }
  for (const StreamId id : silent) {
    const Stream& stream = *Find(id);
    const std::string why =
        fmt::format("not heard of for {}",
                    FormatDuration(stream.said_all ? kLeavingPatience : options_.timing.timeout));
    if (!stream.greeted) refusals_.Refused("no Hello", stream.source, "nothing in time");
    stream.downstream->End(absl::DeadlineExceededError(why));
    Detach(id, why, changed);
  }
}

void Registry::SendHeartbeats(SteadyTime now) {
  if (now - last_heartbeat_ < options_.timing.heartbeat) return;
  last_heartbeat_ = now;
  v1::ToWorker message;
  message.mutable_heartbeat()->set_sequence(++heartbeat_sequence_);
  for (auto& [id, stream] : streams_) {
    // Who waits for an answer keeps its place in the line as long as it hears of us.
    if (stream.identity || stream.waits) stream.downstream->Send(message);
  }
}

void Registry::TellHeldBackProgress(SteadyTime now, Keys* changed) {
  for (auto& [key, job] : jobs_) {
    if (!job.progress_pending || now - job.progress_told < options_.timing.progress_interval)
      continue;
    job.progress_pending = false;
    job.progress_told = now;
    changed->insert(key);
  }
}

// Those whose pods are gone are named no more. The verifier is asked without the lock, so a worker
// may have dialled in again meanwhile: only those still away go.
void Registry::PruneGonePods() {
  std::vector<WorkerIdentity> away;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, job] : jobs_) {
      for (const auto& [uid, worker] : job.workers) {
        if (worker.stream == 0) away.push_back({key, worker.view.pod, uid});
      }
    }
  }
  for (const WorkerIdentity& identity : away) {
    const absl::Status verdict = verifier_.Verify(identity, /*leaving=*/true);
    if (!absl::IsNotFound(verdict) && !absl::IsPermissionDenied(verdict)) continue;
    std::lock_guard lock(mutex_);
    const auto job = jobs_.find(identity.job);
    if (job == jobs_.end()) continue;
    const auto worker = job->second.workers.find(identity.pod_uid);
    if (worker != job->second.workers.end() && worker->second.stream == 0)
      job->second.workers.erase(worker);
  }
}

}  // namespace ringmaster::rendezvous

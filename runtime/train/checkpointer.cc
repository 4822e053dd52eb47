#include "runtime/train/checkpointer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "runtime/checkpoint/leftovers.h"
#include "runtime/checkpoint/shard_file.h"

namespace ringmaster::train {

using checkpoint::CheckpointRef;

Checkpointer::Checkpointer(CheckpointPlan plan, EventSink& events, TrainerMetrics& metrics)
    : plan_(std::move(plan)),
      events_(events),
      metrics_(metrics),
      writer_(plan_.directory, plan_.job,
              [this](const checkpoint::WriteResult& result) { OnWritten(result); }) {}

void Checkpointer::StartRound(const Round& round) {
  {
    std::lock_guard lock(mutex_);
    round_ = round.number;
  }
  rank_ = round.rank;
  world_ = static_cast<int>(round.members.size());
}

void Checkpointer::Restored(const Round& round, std::vector<CheckpointRef> existing) {
  existing_ = std::move(existing);
  last_ = plan_.clock->SteadyNow();
  if (rank_ != 0) return;
  SetAside(round);
  const auto removed =
      checkpoint::RemoveLeftovers(plan_.directory, plan_.job, round.number, round.checkpoints);
  if (!removed.ok()) {
    log::Warning("could not remove what earlier rounds left behind", {{"error", removed.status()}});
  } else if (!removed->empty()) {
    log::Info("removed what earlier rounds left behind",
              {{"files", removed->size()}, {"first", removed->front()}});
  }
}

// What status has forgotten by the next round would go as a leftover then; somebody may want to see
// what has become of it.
void Checkpointer::SetAside(const Round& round) {
  std::vector<CheckpointRef> rejected;
  for (const CheckpointRef& ref : round.checkpoints) {
    if (!Exists(ref.id.step)) rejected.push_back(ref);
  }
  const auto names = checkpoint::SetAside(plan_.directory, plan_.job, rejected);
  if (!names.ok()) {
    log::Warning("a checkpoint that does not load stays where it is", {{"error", names.status()}});
  } else if (!names->empty()) {
    log::Warning("set aside what does not load",
                 {{"files", names->size()}, {"first", names->front()}});
  }
}

bool Checkpointer::DueByTime() const {
  return plan_.every_seconds > 0 &&
         plan_.clock->SteadyNow() - last_ >= std::chrono::seconds(plan_.every_seconds);
}

bool Checkpointer::DueBySteps(int64_t step) const {
  return plan_.every_steps > 0 && step % plan_.every_steps == 0;
}

void Checkpointer::Submit(Replica& replica, Duration patience) {
  const checkpoint::CheckpointId id{
      .step = static_cast<int64_t>(replica.step()), .round = round_, .world_size = world_};
  last_ = plan_.clock->SteadyNow();
  if (id == submitted_ || Exists(id.step)) return;
  const std::vector<checkpoint::TensorView> tensors = replica.Tensors();
  std::vector<size_t> sizes;
  for (const checkpoint::TensorView& tensor : tensors) sizes.push_back(tensor.data.size());
  const checkpoint::PartRange part = checkpoint::PartOf(sizes, world_, rank_);
  const std::optional<double> value = replica.metric_value();
  if (value && std::isfinite(*value)) {
    std::lock_guard lock(mutex_);
    metric_values_[id] = *value;
  }
  const absl::Status taken =
      writer_.Submit(id, rank_, std::span(tensors).subspan(part.begin, part.end - part.begin),
                     replica.Counters(), patience);
  if (!taken.ok()) {
    TakeMetricValue(id);
    return Failed(id, taken);
  }
  submitted_ = id;
}

std::optional<double> Checkpointer::TakeMetricValue(const checkpoint::CheckpointId& id) {
  std::lock_guard lock(mutex_);
  const auto found = metric_values_.extract(id);
  return found.empty() ? std::nullopt : std::optional(found.mapped());
}

void Checkpointer::OnWritten(const checkpoint::WriteResult& result) {
  const std::optional<double> metric_value = TakeMetricValue(result.id);
  {
    std::lock_guard lock(mutex_);
    // Of a round that is over: nobody waits for it, and rank 0 may have removed it half-written.
    if (result.id.round < round_) return;
    written_ = result;
    if (result.status.ok()) last_durable_step_ = result.id.step;
  }
  metrics_.checkpoint_seconds.Observe(result.seconds);
  if (result.status.ok()) {
    metrics_.checkpoints_written.Increment();
    events_.Send(result.id.round, ShardDurable{.step = result.id.step,
                                               .digest = result.digest,
                                               .seconds = result.seconds,
                                               .bytes = result.bytes,
                                               .metric_value = metric_value});
    return;
  }
  Failed(result.id, result.status);
}

void Checkpointer::Failed(const checkpoint::CheckpointId& id, const absl::Status& status) {
  metrics_.checkpoints_failed.Increment();
  log::Error("checkpoint not written", {{"step", id.step}, {"error", status}});
  events_.Send(id.round, CheckpointFailed{.step = id.step, .message = Message(status)});
}

absl::Status Checkpointer::WaitUntilDurable(int64_t step, Duration timeout) {
  RM_RETURN_IF_ERROR(writer_.Flush(timeout));
  if (Exists(step)) return absl::OkStatus();
  if (submitted_.step != step) return absl::DeadlineExceededError("it waits for those before it");
  std::lock_guard lock(mutex_);
  if (written_.id.step == step) return written_.status;
  return absl::InternalError("no checkpoint of this step was written");
}

int64_t Checkpointer::last_durable_step() const {
  std::lock_guard lock(mutex_);
  return last_durable_step_;
}

bool Checkpointer::Exists(int64_t step) const {
  return std::any_of(existing_.begin(), existing_.end(),
                     [&](const CheckpointRef& ref) { return ref.id.step == step; });
}

void Checkpointer::OnCommitted(std::span<const CheckpointCommitted> news) {
  for (const CheckpointCommitted& committed : news) {
    std::erase_if(existing_,
                  [&](const CheckpointRef& ref) { return ref.id == committed.checkpoint.id; });
    existing_.insert(existing_.begin(), committed.checkpoint);
    for (const CheckpointRef& dropped : committed.dropped) Remove(dropped);
  }
}

// Never the newest, whoever says so: a job without a checkpoint begins anew.
void Checkpointer::Remove(const CheckpointRef& dropped) {
  if (!existing_.empty() && existing_.front().id == dropped.id) return;
  std::erase_if(existing_, [&](const CheckpointRef& ref) { return ref.id == dropped.id; });
  if (rank_ != 0) return;
  const absl::Status removed = checkpoint::RemoveCheckpoint(plan_.directory, dropped.id);
  if (!removed.ok()) log::Warning("old checkpoint not removed", {{"error", removed}});
}

}  // namespace ringmaster::train

#include "runtime/train/round_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "common/log.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/restore.h"

namespace ringmaster::train {
namespace {

// How often the ranks ask one another whether the last checkpoint is on disk.
constexpr Duration kAskPeriod = std::chrono::seconds(1);

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

RoundRunner::RoundRunner(const RoundContext& context, const Round& round,
                         collectives::Communicator& communicator)
    : context_(context),
      round_(round),
      communicator_(communicator),
      stream_(context.workload.seed(), context.workload.train().size()),
      samples_(static_cast<size_t>(context.workload.batch())),
      positions_(samples_.size()),
      total_(StepVector<float>::Size(context.workload.layout())),
      own_statistics_(context.workload.layout().state_floats),
      meter_(context.workload, context.metrics, context.options.progress_period) {}

absl::StatusOr<std::optional<Ending>> RoundRunner::Run() {
  const absl::Status status = Train();
  if (ending_ || parted_) return ending_;
  return status.ok() ? absl::InternalError("a round ended without an ending") : status;
}

absl::Status RoundRunner::Train() {
  RM_RETURN_IF_ERROR(AgreeOnWorkload());
  RM_RETURN_IF_ERROR(Restore());
  RM_RETURN_IF_ERROR(PrepareSum());
  while (!done()) {
    RM_ASSIGN_OR_RETURN(const Decisions decided, Step());
    if (EvaluationIsDue()) RM_RETURN_IF_ERROR(Evaluate());
    if (decided.drain && !done()) return LeaveDrained();
    if (decided.part && !done()) return Part();
    if (done()) break;
    if (decided.checkpoint || context_.checkpointer.DueBySteps(step())) {
      context_.checkpointer.Submit(context_.replica, Patience());
    }
    context_.checkpointer.OnCommitted(context_.inbox.TakeCommitted());
    if (meter_.IsDue()) context_.events.Send(round_.number, meter_.Take(context_.replica));
  }
  return Finish();
}

// Workers on other data or another configuration would train on in silence, each something else.
absl::Status RoundRunner::AgreeOnWorkload() {
  const std::string mine = context_.workload.Fingerprint();
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator_.AllgatherBytes(std::as_bytes(std::span(mine)), "workload"));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return End(contract::kExitBadData,
               fmt::format("worker {} has other data or another configuration than worker 0: its "
                           "data file must be the same",
                           rank));
  }
  return absl::OkStatus();
}

absl::Status RoundRunner::Restore() {
  const auto rejected = [this](const checkpoint::CheckpointRef& ref, const absl::Status& why) {
    context_.metrics.checkpoints_rejected.Increment();
    log::Warning("checkpoint does not load", {{"step", ref.id.step}, {"error", why}});
    context_.events.Send(round_.number,
                         CheckpointRejected{.step = ref.id.step, .message = Message(why)});
  };
  context_.checkpointer.StartRound(round_);
  RM_ASSIGN_OR_RETURN(auto existing, RestoreNewest(communicator_, context_.checkpointer.directory(),
                                                   round_.checkpoints, context_.replica, rejected));
  context_.checkpointer.Restored(round_, std::move(existing));
  log::Info("round begins", {{"round", round_.number},
                             {"rank", round_.rank},
                             {"workers", round_.members.size()},
                             {"step", step()}});
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  return absl::OkStatus();
}

absl::Status RoundRunner::PrepareSum() {
  auto sum = MakeGradientSum({.shards = round_.shards,
                              .batch = context_.workload.batch(),
                              .elements = total_.size(),
                              .world = communicator_.world(),
                              .rank = communicator_.rank(),
                              .arrival_order = context_.options.debug.arrival_order});
  if (!sum.ok()) return End(contract::kExitBadConfig, Message(sum.status()));
  sum_ = *std::move(sum);
  return absl::OkStatus();
}

absl::StatusOr<RoundRunner::Decisions> RoundRunner::Step() {
  meter_.StepBegins();
  const uint64_t first = data::FirstPosition(context_.replica.step(), context_.workload.batch());
  stream_.Read(first, samples_);
  std::iota(positions_.begin(), positions_.end(), first);
  checkpoint_wanted_ = context_.inbox.checkpoint_requested() ||
                       (round_.rank == 0 && context_.checkpointer.DueByTime());
  RM_RETURN_IF_ERROR(ComputeShards());
  meter_.ShardsComputed(own_samples_);
  RM_RETURN_IF_ERROR(sum_->Reduce(communicator_, total_.span()));
  meter_.Reduced(communicator_.stats());
  const StepVector<const float> sums(context_.workload.layout(), total_.span());
  RM_RETURN_IF_ERROR(Commit(sums));
  const Decisions decided{.drain = sums[Scalar::kDrain] > 0,
                          .part = sums[Scalar::kPart] > 0,
                          .checkpoint = sums[Scalar::kCheckpoint] > 0};
  // A request that came while the step was computed is met by the same checkpoint.
  if (decided.checkpoint) context_.inbox.CheckpointRequestIsMet();
  return decided;
}

absl::Status RoundRunner::ComputeShards() {
  const collectives::ShardRange owned = sum_->owned();
  std::fill(own_statistics_.span().begin(), own_statistics_.span().end(), 0.0F);
  own_samples_ = 0;
  const auto first_row = static_cast<uint64_t>(sum_->RowsOf(owned.begin).begin);
  if (context_.options.debug.local_streams) {
    for (uint64_t& position : positions_) position -= first_row;
  }
  for (int shard = owned.begin; shard < owned.end; ++shard) {
    const data::RowRange rows = sum_->RowsOf(shard);
    RM_ASSIGN_OR_RETURN(const StepVector<float> contribution,
                        context_.shards.Run(rows, samples_, positions_));
    SetFlags(shard, contribution);
    RM_RETURN_IF_ERROR(sum_->Add(shard, contribution.all()));
    own_samples_ += rows.size();
    if (!context_.options.debug.local_statistics) continue;
    std::transform(contribution.statistics().begin(), contribution.statistics().end(),
                   own_statistics_.span().begin(), own_statistics_.span().begin(),
                   std::plus<float>());
  }
  return absl::OkStatus();
}

// A rank's flags travel once, with its first shard.
void RoundRunner::SetFlags(int shard, const StepVector<float>& contribution) {
  if (shard != sum_->owned().begin) return;
  const bool alone = context_.inbox.draining_alone();
  contribution[Scalar::kDrain] = context_.inbox.draining() && !alone ? 1.0F : 0.0F;
  contribution[Scalar::kPart] = alone ? 1.0F : 0.0F;
  contribution[Scalar::kCheckpoint] = checkpoint_wanted_ ? 1.0F : 0.0F;
}

absl::Status RoundRunner::Commit(const StepVector<const float>& sums) {
  const double loss = sums[Scalar::kLoss] / context_.workload.labels_per_batch();
  const bool finite =
      std::isfinite(loss) && AllFinite(sums.gradients()) && AllFinite(sums.statistics());
  const auto policy = context_.workload.config().non_finite_loss;
  if (!finite && policy != training::v1alpha1::NonFiniteLoss::kSkip) {
    return End(contract::kExitDiverged,
               fmt::format("the loss, a gradient or a statistic is not a finite number in step {} "
                           "(loss {}): lower the learning rate, or set nonFiniteLoss: Skip",
                           step() + 1, loss));
  }
  StepSums step_sums{.gradients = sums.gradients(),
                     .statistics = sums.statistics(),
                     .statistics_samples = context_.workload.batch(),
                     .mean_loss = loss};
  if (context_.options.debug.local_statistics) {
    step_sums.statistics = own_statistics_.span();
    step_sums.statistics_samples = own_samples_;
  }
  RM_RETURN_IF_ERROR(context_.replica.Commit(step_sums, samples_, !finite));
  meter_.Committed(context_.replica, !finite);
  if (!finite) log::Warning("step left out: its loss is not finite", {{"step", step()}});
  return absl::OkStatus();
}

// After the step in which another `everyEpochs` were completed; the last step is always evaluated.
bool RoundRunner::EvaluationIsDue() const {
  if (done()) return true;
  const double every = context_.workload.config().evaluation.every_epochs;
  if (every <= 0) return false;
  const uint64_t steps = context_.replica.step();
  return std::floor(context_.workload.EpochsAfter(steps) / every) >
         std::floor(context_.workload.EpochsAfter(steps - 1) / every);
}

absl::Status RoundRunner::Evaluate() {
  RM_ASSIGN_OR_RETURN(const Evaluation result, context_.evaluator.Run(communicator_));
  context_.replica.SetAccuracy(result.accuracy);
  context_.metrics.accuracy.Set(result.accuracy);
  if (round_.rank == 0) {
    log::Info(
        "evaluated",
        {{"step", step()},
         {"epoch", fmt::format("{:.2f}", context_.workload.EpochsAfter(context_.replica.step()))},
         {"loss", fmt::format("{:.4f}", context_.replica.loss())},
         {"accuracy", fmt::format("{:.4f}", result.accuracy)}});
  }
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  return absl::OkStatus();
}

// How long this rank may be busy on its own: its peers, who wait for it, take a longer silence for
// a hang.
Duration RoundRunner::Patience() const {
  return context_.options.operation_timeout / 4;
}

// The run's last checkpoint: what it was for. Then the operator gets a moment to make it exist, so
// that what it drops can still be deleted.
absl::Status RoundRunner::WriteLast() {
  Checkpointer& checkpointer = context_.checkpointer;
  checkpointer.OnCommitted(context_.inbox.TakeCommitted());
  RM_RETURN_IF_ERROR(AwaitDurable());
  const SteadyTime deadline = std::chrono::steady_clock::now() + context_.options.commit_timeout;
  while (!checkpointer.Exists(step()) && !context_.inbox.RoundIsOver()) {
    const auto left =
        std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now());
    if (left <= Duration::zero()) break;
    checkpointer.OnCommitted(context_.inbox.WaitForCommitted(left));
  }
  return absl::OkStatus();
}

// Until all ranks' parts of this step are on disk. They ask one another now and then, for a rank
// that only waits for its disk would be taken for one that hangs; so whatever ends the round ends
// this wait too.
absl::Status RoundRunner::AwaitDurable() {
  enum Part : int64_t { kFailed, kPending, kDurable };
  const SteadyTime deadline = std::chrono::steady_clock::now() + context_.options.flush_timeout;
  while (true) {
    context_.checkpointer.Submit(context_.replica, Patience());
    const absl::Status mine =
        context_.checkpointer.WaitUntilDurable(step(), std::min(Patience(), kAskPeriod));
    const bool patient =
        absl::IsDeadlineExceeded(mine) && std::chrono::steady_clock::now() < deadline;
    const int64_t part = mine.ok() ? kDurable : patient ? kPending : kFailed;
    int64_t slowest = 0;
    RM_RETURN_IF_ERROR(communicator_.Allreduce(collectives::Reduction::kMin, {&part, 1},
                                               {&slowest, 1}, "checkpoint durable"));
    if (slowest == kDurable) return absl::OkStatus();
    if (slowest == kPending) continue;
    return End(contract::kExitNoResource,
               fmt::format("the checkpoint of step {} could not be written: {}", step(),
                           part == kFailed ? Message(mine) : "another worker failed"));
  }
}

absl::Status RoundRunner::Finish() {
  RM_RETURN_IF_ERROR(WriteLast());
  const Finished finished{.weights_sha256 = context_.replica.WeightsDigest(),
                          .steps = step(),
                          .accuracy = context_.replica.accuracy(),
                          .loss = context_.replica.loss()};
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  context_.events.Send(round_.number, finished);
  return End(contract::kExitOk, fmt::format("finished at step {}: weights sha256:{}", step(),
                                            finished.weights_sha256));
}

absl::Status RoundRunner::LeaveDrained() {
  RM_RETURN_IF_ERROR(WriteLast());
  context_.events.Send(round_.number, Drained{.step = step()});
  return End(contract::kExitOk, fmt::format("drained at step {}", step()));
}

// Who was asked to go leaves; the others stay where they are and wait for the round without them,
// which resumes from here: no step is repeated. Should the checkpoint fail, only who leaves has
// something to answer for: the others resume from the one before.
absl::Status RoundRunner::Part() {
  if (context_.inbox.draining()) return LeaveDrained();
  const absl::Status written = WriteLast();
  if (!written.ok() && !ending_) return written;
  ending_.reset();
  parted_ = true;
  log::Info("waiting for the round without those who leave", {{"step", step()}});
  return absl::OkStatus();
}

absl::Status RoundRunner::End(int exit_code, const std::string& message) {
  ending_ = Ending{.exit_code = exit_code, .message = message};
  return absl::CancelledError(message);
}

}  // namespace ringmaster::train

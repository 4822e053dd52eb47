// StepRunner: one rank's training step, from the samples' numbers to changed weights, in three
// phases: compute the owned shards, reduce, commit. Nothing that lasts changes before the third,
// which is local. RoundRunner goes through them for training, LoneWorker to see how long they take.
//
// Not thread-safe; a phase blocks as its parts do, Reduce as the communicator's operations.
#ifndef RINGMASTER_RUNTIME_TRAIN_STEP_RUNNER_H_
#define RINGMASTER_RUNTIME_TRAIN_STEP_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/timeline.h"
#include "runtime/data/sample_stream.h"
#include "runtime/train/float_buffer.h"
#include "runtime/train/gradient_sum.h"
#include "runtime/train/options.h"
#include "runtime/train/replica.h"
#include "runtime/train/shard_runner.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// What a step works on. Everything outlives the runner.
struct StepContext {
  const Workload& workload;
  Replica& replica;
  ShardRunner& shards;
  const DebugSwitches& debug;
  collectives::Timeline* timeline = nullptr;  // null: none is kept
};

// What ranks decide together: each is set for all after a step in which any rank has set it.
struct StepFlags {
  bool drain = false;       // all leave
  bool part = false;        // some leave
  bool checkpoint = false;  // all write one
};

class StepRunner {
 public:
  // `shards` as in Round. kInvalidArgument when the batch cannot be cut so, kResourceExhausted when
  // there is no memory for the shards that are to be computed together, or for a share of a batch
  // without shards; errors of building the network for that.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(
      const StepContext& context, int shards, collectives::Communicator& communicator);

  // Computes this rank's shards of the replica's next step. `wanted`, if there is one, is asked
  // once, after the first shard, which flags this rank sets. Errors are this rank's own, whatever
  // the communicator does meanwhile; but where shards wait for those of other ranks
  // (Workload::synchronises), every rank calls it, it blocks as the communicator's operations do,
  // and sums_failed() says that the error is the communicator's.
  absl::Status Compute(const std::function<StepFlags()>& wanted);
  bool sums_failed() const { return sums_failed_; }
  // Samples of the last Compute, and how many of them this rank owns.
  std::span<const uint32_t> samples() const { return samples_; }
  int64_t own_samples() const { return own_samples_; }

  // Bytes that steps take, at least, beside weights and what the optimizer keeps.
  size_t bytes() const {
    return context_.shards.bytes() + total_.span().size_bytes() + sum_->bytes();
  }

  // The sums over all ranks, and what they and those of Compute moved. Errors are the
  // communicator's.
  absl::StatusOr<ReductionTraffic> Reduce();

  // What came out of Reduce; gradients as sums over the batch, laid out as the model says.
  std::span<const float> gradients() const { return sums().gradients(); }
  StepFlags flags() const;
  double mean_loss() const;
  // Whether the loss, every gradient and every statistic is a number. Where Commit is to clip by
  // the norm, it has that from here.
  bool finite();

  // Applies the step; with `skip` it only counts. Errors are Replica::Commit's.
  absl::Status Commit(bool skip);

  // After a step whose sums were not finite, committed with `skip` or not at all: computes this
  // rank's shards again and says where the first such number came from, as in "the first came out
  // of conv2 (conv2d, f32[8, 50, 8, 8]) with samples 7, 1 of the data"; or which label is none, as
  // in "the data is wrong in sample 7: label 3 is not in 0..1 (2 classes)". Nothing where labels
  // are right and all that this rank's ops make is finite. The sums are undefined afterwards.
  // Errors are Compute's.
  absl::StatusOr<std::optional<std::string>> ExplainNonFinite();

 private:
  StepRunner(const StepContext& context, int parts, collectives::Communicator& communicator,
             bool alone);

  StepVector<const float> sums() const { return {context_.workload.layout(), sums_}; }
  absl::Status ComputeShard(int shard, const std::function<StepFlags()>& wanted);
  absl::Status ComputeTogether(const std::function<StepFlags()>& wanted);
  // What a shard contributes, to the sums.
  absl::Status Take(int shard, const StepVector<float>& contribution,
                    const std::function<StepFlags()>& wanted);
  bool GradientsAreFinite();
  std::span<const uint32_t> SamplesOf(int shard) const;
  // AddOverShards.
  absl::Status SumOverShards(size_t point, std::string_view name,
                             std::span<const std::span<const double>> own, std::span<double> total);

  const StepContext context_;
  const int parts_;  // shards, or workers where there are none
  collectives::Communicator& communicator_;
  // One worker with one shard: what it contributes is the sum, and is neither copied nor kept
  // twice.
  const bool alone_;
  data::SampleStream stream_;
  std::vector<uint32_t> samples_;         // of the whole batch
  std::vector<uint64_t> positions_;       // their places in the stream
  std::vector<data::RowRange> rows_;      // of shards that are computed together
  FloatBuffer total_;                     // empty when alone
  std::unique_ptr<GradientSum> sum_;      // behind total_, which it may be writing to
  std::span<const float> sums_;           // total_, or the shard's contribution
  std::optional<double> sum_of_squares_;  // of this step's gradients, if it was asked for
  FloatBuffer own_statistics_;            // DebugSwitches::local_statistics
  // The sums that shards wait for in a step, in their order, as far as one has come.
  std::deque<collectives::OrderedSum<double>> over_shards_;
  bool sums_failed_ = false;
  collectives::OperationStats synchronised_;  // what they moved in the last Compute
  int64_t own_samples_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_STEP_RUNNER_H_

// How a step's contributions become the sums over the whole batch.
//
// The step's vector (shard_runner.h) is cut into buckets of neighbouring gradients, in the order in
// which backward makes them, and one for what is behind the gradients. Each is summed by itself, as
// the job's configuration says (bucket_sum.h), the gradients' while the last of this rank's shards
// is still computed. Where buckets end changes no bit: they end at fixed places of the vector only
// (kBucketGrid), and what cannot be cut is one bucket.
#ifndef RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_
#define RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/shard_tree.h"
#include "runtime/collectives/timeline.h"
#include "runtime/data/sample_stream.h"
#include "runtime/nn/model.h"
#include "runtime/train/bucket_sum.h"
#include "runtime/train/task_queue.h"

namespace ringmaster::training::v1alpha1 {
struct Gradients;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::train {

// Buckets begin at multiples of this many floats: whole blocks of every compression.
inline constexpr size_t kBucketGrid = 2048;

struct GradientSumOptions {
  int shards = 0;  // 0: as many as workers, without compression around the ring
  int64_t batch = 1;
  const nn::Model* layout = nullptr;
  const training::v1alpha1::Gradients* config = nullptr;
  bool arrival_order = false;                 // DebugSwitches::arrival_order
  collectives::Timeline* timeline = nullptr;  // outlives the sum; null: none is kept
};

// What a step's reduction cost on this rank.
struct ReductionTraffic {
  uint64_t sent = 0;  // bytes
  uint64_t received = 0;
  // Bytes that a ring of 32-bit floats would have sent beyond `sent`; 0 without compression.
  uint64_t saved = 0;
};

// The bytes that all of the communicator's operations have moved so far.
collectives::OperationStats TotalOf(const collectives::Communicator& communicator);

// One round's way of summing. Used by one thread; it may have one of its own.
class GradientSum {
 public:
  // `communicator` and `out`, which has the step vector's size, outlive the object. An empty `out`
  // only divides the batch: a worker that is alone with a single shard has nothing to sum. Between
  // Add and the end of Reduce the communicator is its alone. kInvalidArgument when there are more
  // workers than shards, or more of either than samples, or more gradients than topK takes.
  static absl::StatusOr<std::unique_ptr<GradientSum>> Create(
      const GradientSumOptions& options, collectives::Communicator& communicator,
      std::span<float> out);

  // The shards that this rank computes, and the rows of the batch that each of them has.
  collectives::ShardRange owned() const { return owned_; }
  data::RowRange RowsOf(int shard) const;

  // Takes the gradients of an owned shard's contribution from float `from` on, before the others
  // are there; `from` falls from call to call. Optional, and of use for the last owned shard, whose
  // calls begin the reduction.
  absl::Status AddGradients(int shard, std::span<const float> contribution, size_t from);

  // Takes the rest of an owned shard's contribution; shards in increasing order. Nothing is kept of
  // the memory.
  absl::Status Add(int shard, std::span<const float> contribution);

  // Waits until `out` is the sum over all shards. Every rank of the round calls it; it blocks and
  // fails as the communicator's operations do. Ready for the next step after OK.
  absl::StatusOr<ReductionTraffic> Reduce();

  // What it keeps on this rank, at least, from the first step on: sums of its own shards, and what
  // a method keeps besides.
  size_t bytes() const;

  // The sum counts: the step was committed, not left out.
  void Commit();

 private:
  struct Bucket {
    collectives::Piece range;
    std::string name;
    bool gradients = true;  // not what is behind them
    std::unique_ptr<BucketSum> sum;
    collectives::Timeline::Time ready{};  // to be reduced
  };

  GradientSum(const GradientSumOptions& options, collectives::Communicator& communicator,
              std::span<float> out);
  void AddBucket(collectives::Piece range, bool gradients, std::string name);
  absl::Status AddNext(int shard, std::span<const float> contribution);
  absl::Status ReduceBucket(Bucket& bucket);

  const GradientSumOptions options_;
  collectives::Communicator& communicator_;
  const std::span<float> out_;
  const int parts_;  // shards, or workers
  const collectives::ShardRange owned_;
  std::vector<Bucket> buckets_;
  size_t next_ = 0;  // the first bucket that the present shard has not been added to
  bool compressed_ = false;
  collectives::OperationStats before_;  // what the communicator had done before the step
  std::unique_ptr<TaskQueue> overlap_;  // none where nothing can overlap
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_

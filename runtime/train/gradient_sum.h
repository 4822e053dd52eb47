// How a step's contributions become the sums over the whole batch: through the ordered tree, which
// gives the same bits at every world size, or around the plain ring, which does not.
#ifndef RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_
#define RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/shard_tree.h"
#include "runtime/data/sample_stream.h"

namespace ringmaster::train {

// One round's way of summing. Not thread-safe.
class GradientSum {
 public:
  virtual ~GradientSum() = default;

  // The shards that this rank computes, and the rows of the batch that each of them has.
  virtual collectives::ShardRange owned() const = 0;
  virtual data::RowRange RowsOf(int shard) const = 0;

  // Takes the contribution of an owned shard; nothing is kept of `values`.
  virtual absl::Status Add(int shard, std::span<const float> values) = 0;

  // out = the sum over all shards. Every rank of the round calls it; it blocks and fails as the
  // communicator's operations do. Ready for the next step after OK.
  virtual absl::Status Reduce(collectives::Communicator& communicator, std::span<float> out) = 0;
};

struct GradientSumOptions {
  int shards = 0;  // 0: the ring
  int64_t batch = 1;
  size_t elements = 0;
  int world = 1;
  int rank = 0;
  bool arrival_order = false;  // DebugSwitches::arrival_order
};

// kInvalidArgument when there are more workers than shards, or more of either than samples.
absl::StatusOr<std::unique_ptr<GradientSum>> MakeGradientSum(const GradientSumOptions& options);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_GRADIENT_SUM_H_

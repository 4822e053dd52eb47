#include "runtime/train/gradient_sum.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/train/float_buffer.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using collectives::OrderedSum;
using collectives::ShardRange;
using collectives::SumOrder;

constexpr char kOperation[] = "step";

class TreeSum final : public GradientSum {
 public:
  explicit TreeSum(const GradientSumOptions& options)
      : options_(options),
        sum_(options.shards, options.elements,
             options.arrival_order ? SumOrder::kByRank : SumOrder::kTree) {}

  ShardRange owned() const override {
    return collectives::OwnedShards(options_.shards, options_.world, options_.rank);
  }
  data::RowRange RowsOf(int shard) const override {
    return data::ShardRows(options_.batch, options_.shards, shard);
  }
  absl::Status Add(int shard, std::span<const float> values) override {
    return sum_.Add(shard, values);
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out) override {
    RM_RETURN_IF_ERROR(sum_.Reduce(communicator, out, kOperation));
    sum_.Clear();
    return absl::OkStatus();
  }

 private:
  const GradientSumOptions options_;
  OrderedSum<float> sum_;
};

// Each rank's slice of the batch is its one shard.
class RingSum final : public GradientSum {
 public:
  explicit RingSum(const GradientSumOptions& options)
      : options_(options), mine_(options.elements) {}

  ShardRange owned() const override { return {options_.rank, options_.rank + 1}; }
  data::RowRange RowsOf(int shard) const override {
    return data::ShardRows(options_.batch, options_.world, shard);
  }
  absl::Status Add(int, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), mine_.span().begin());
    return absl::OkStatus();
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out) override {
    return communicator.Allreduce(collectives::Reduction::kSum, mine_.span(), out, kOperation);
  }

 private:
  const GradientSumOptions options_;
  FloatBuffer mine_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GradientSum>> MakeGradientSum(const GradientSumOptions& options) {
  const int parts = options.shards == 0 ? options.world : options.shards;
  if (parts > options.batch || options.world > parts) {
    return absl::InvalidArgumentError(
        fmt::format("a batch of {} samples in {} shards cannot be shared by {} workers",
                    options.batch, parts, options.world));
  }
  if (options.shards == 0) return std::make_unique<RingSum>(options);
  return std::make_unique<TreeSum>(options);
}

}  // namespace ringmaster::train

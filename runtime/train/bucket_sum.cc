#include "runtime/train/bucket_sum.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/compression/one_bit.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/compression/top_k.h"
#include "runtime/collectives/training/adasum.h"
#include "runtime/train/float_buffer.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using collectives::OrderedSum;
using collectives::SumOrder;

SumOrder OrderOf(const BucketSumOptions& options) {
  return options.arrival_order ? SumOrder::kByRank : SumOrder::kTree;
}

// How many partial sums this rank keeps side by side.
size_t MostSumsOf(const BucketSumOptions& options) {
  return collectives::MostSums(
      options.shards, collectives::OwnedShards(options.shards, options.world, options.rank));
}

class TreeSum final : public BucketSum {
 public:
  explicit TreeSum(const BucketSumOptions& options)
      : sum_(options.shards, options.elements, OrderOf(options)), kept_(MostSumsOf(options)) {}

  absl::Status Add(int shard, std::span<const float> values) override {
    return sum_.Add(shard, values);
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out,
                      std::string_view name) override {
    RM_RETURN_IF_ERROR(sum_.Reduce(communicator, out, name));
    sum_.Clear();
    return absl::OkStatus();
  }
  size_t bytes() const override { return kept_ * sum_.elements() * sizeof(float); }

 private:
  OrderedSum<float> sum_;
  const size_t kept_;
};

// The same of 16-bit numbers, rounded at every node of the tree, leaves and root included.
template <typename T>
class RoundedSum final : public BucketSum {
 public:
  explicit RoundedSum(const BucketSumOptions& options)
      : encoded_(collectives::EncodedCount<T>(options.elements)),
        sum_(options.shards, encoded_.size(), OrderOf(options)),
        kept_(MostSumsOf(options) + 1) {}

  absl::Status Add(int shard, std::span<const float> values) override {
    collectives::Encode(values, encoded_);
    return sum_.Add(shard, encoded_);
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out,
                      std::string_view name) override {
    RM_RETURN_IF_ERROR(sum_.Reduce(communicator, encoded_, name));
    sum_.Clear();
    collectives::Decode(encoded_, out);
    return absl::OkStatus();
  }
  size_t bytes() const override { return kept_ * encoded_.size() * sizeof(T); }

 private:
  std::vector<T> encoded_;
  OrderedSum<T> sum_;
  const size_t kept_;  // encoded_, too
};

// A rank's shards added as they come. The first one is copied: adding zeros would turn -0 into +0.
class LocalSum {
 public:
  explicit LocalSum(size_t elements) : values_(elements) {}

  void Add(std::span<const float> values) {
    if (std::exchange(empty_, false)) {
      std::copy(values.begin(), values.end(), values_.span().begin());
      return;
    }
    std::transform(values.begin(), values.end(), values_.span().begin(), values_.span().begin(),
                   std::plus<float>());
  }
  std::span<const float> values() const { return values_.span(); }
  size_t bytes() const { return values_.span().size_bytes(); }
  void Clear() { empty_ = true; }

 private:
  FloatBuffer values_;
  bool empty_ = true;
};

class RingSum final : public BucketSum {
 public:
  explicit RingSum(const BucketSumOptions& options) : mine_(options.elements) {}

  absl::Status Add(int, std::span<const float> values) override {
    mine_.Add(values);
    return absl::OkStatus();
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out,
                      std::string_view name) override {
    RM_RETURN_IF_ERROR(
        communicator.Allreduce(collectives::Reduction::kSum, mine_.values(), out, name));
    mine_.Clear();
    return absl::OkStatus();
  }
  size_t bytes() const override { return mine_.bytes(); }

 private:
  LocalSum mine_;
};

class ResidualSum final : public BucketSum {
 public:
  ResidualSum(const BucketSumOptions& options, std::unique_ptr<collectives::FeedbackSum> sum)
      : mine_(options.elements), sum_(std::move(sum)) {}

  absl::Status Add(int, std::span<const float> values) override {
    mine_.Add(values);
    return absl::OkStatus();
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out,
                      std::string_view name) override {
    RM_RETURN_IF_ERROR(sum_->Reduce(communicator, mine_.values(), out, name));
    mine_.Clear();
    return absl::OkStatus();
  }
  void Commit() override { sum_->Commit(); }
  size_t bytes() const override { return mine_.bytes() + sum_->bytes(); }

 private:
  LocalSum mine_;
  const std::unique_ptr<collectives::FeedbackSum> sum_;
};

// Joins the shards' mean gradients. They are sums over rows here, and whoever takes the result
// divides it by the batch: so each is brought to the batch's size first.
class AdasumJoin final : public BucketSum {
 public:
  explicit AdasumJoin(const BucketSumOptions& options)
      : options_(options),
        scaled_(options.elements),
        join_(options.shards, options.elements, options.tensors) {}

  absl::Status Add(int shard, std::span<const float> values) override {
    const auto factor = static_cast<float>(static_cast<double>(options_.batch) /
                                           static_cast<double>(options_.rows[shard].size()));
    std::transform(values.begin(), values.end(), scaled_.span().begin(),
                   [factor](float value) { return factor * value; });
    return join_.Add(shard, scaled_.span());
  }
  absl::Status Reduce(Communicator& communicator, std::span<float> out,
                      std::string_view name) override {
    RM_RETURN_IF_ERROR(join_.Reduce(communicator, out, name));
    join_.Clear();
    return absl::OkStatus();
  }
  size_t bytes() const override {
    return scaled_.span().size_bytes() + join_.bytes(options_.world, options_.rank);
  }

 private:
  const BucketSumOptions options_;
  FloatBuffer scaled_;
  collectives::Adasum join_;
};

}  // namespace

std::unique_ptr<BucketSum> MakeExactSum(const BucketSumOptions& options) {
  if (options.ring) return std::make_unique<RingSum>(options);
  return std::make_unique<TreeSum>(options);
}

std::unique_ptr<BucketSum> MakeBucketSum(const BucketSumOptions& options,
                                         const training::v1alpha1::Gradients& config) {
  const size_t elements = options.elements;
  if (config.bf16) return std::make_unique<RoundedSum<collectives::BFloat16>>(options);
  if (config.f16) return std::make_unique<RoundedSum<collectives::HalfBlock>>(options);
  if (config.top_k) {
    return std::make_unique<ResidualSum>(
        options, std::make_unique<collectives::TopKSum>(elements, config.top_k->share));
  }
  if (config.one_bit) {
    return std::make_unique<ResidualSum>(options,
                                         std::make_unique<collectives::OneBitSum>(elements));
  }
  if (config.adasum) return std::make_unique<AdasumJoin>(options);
  return MakeExactSum(options);
}

bool NamesMethod(const training::v1alpha1::Gradients& config) {
  return config.bf16 || config.f16 || config.top_k || config.one_bit || config.adasum;
}

bool MayBeCut(const training::v1alpha1::Gradients& config) {
  return !config.top_k && !config.adasum;
}

}  // namespace ringmaster::train

// How one bucket of a step's vector is summed over the shards: exactly, in 16 bits, with error
// feedback, or by Adasum.
#ifndef RINGMASTER_RUNTIME_TRAIN_BUCKET_SUM_H_
#define RINGMASTER_RUNTIME_TRAIN_BUCKET_SUM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/data/sample_stream.h"

namespace ringmaster::training::v1alpha1 {
struct Gradients;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::train {

// One round's sum of one bucket. Not thread-safe.
class BucketSum {
 public:
  virtual ~BucketSum() = default;

  // Takes an owned shard's values, in the order of shards; nothing is kept of the memory.
  virtual absl::Status Add(int shard, std::span<const float> values) = 0;

  // out = the sum over all shards; ready for the next step after OK. A collective operation, or
  // several.
  virtual absl::Status Reduce(collectives::Communicator& communicator, std::span<float> out,
                              std::string_view name) = 0;

  // The last sum counts: what it did not send is left for the next.
  virtual void Commit() {}

  // What it keeps on this rank, at least, from the first step on.
  virtual size_t bytes() const = 0;
};

struct BucketSumOptions {
  int shards = 1;  // at least as many as workers
  bool ring = false;
  bool arrival_order = false;
  size_t elements = 0;
  int64_t batch = 1;
  int world = 1;
  int rank = 0;                      // which adds OwnedShards(shards, world, rank)
  std::vector<data::RowRange> rows;  // by shard
  std::vector<size_t> tensors;       // where each begins in the bucket, from 0
};

// Sums floats exactly so: along the tree, or around the ring.
std::unique_ptr<BucketSum> MakeExactSum(const BucketSumOptions& options);

// As the configuration says.
std::unique_ptr<BucketSum> MakeBucketSum(const BucketSumOptions& options,
                                         const training::v1alpha1::Gradients& config);

// Whether the configuration names a method other than the exact sum.
bool NamesMethod(const training::v1alpha1::Gradients& config);

// Whether the method's result for a value depends on its block of kBucketGrid alone, so that
// buckets may end there.
bool MayBeCut(const training::v1alpha1::Gradients& config);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_BUCKET_SUM_H_

// Batch norm's running statistics, moved at commit.
//
// Each shard normalises by its own mean and variance (biased), which are outputs of its graph. A
// step's statistic is their mean over the samples: each shard's is multiplied by its samples, the
// shards are added in the same tree as gradients, and the sum is divided by the batch. So the
// running statistics do not depend on the number of workers, nor on shards of unequal size. (The
// variance of a step is the mean of the shards' variances, as with any data-parallel batch norm;
// what the means differ by is not in it.) A synchronised batch norm's outputs are the whole
// batch's, the same on every shard: their mean over the samples is what they are, and the variance
// the unbiased one. Thread-safe for distinct buffers.
#ifndef RINGMASTER_RUNTIME_NN_RUNNING_STATISTICS_H_
#define RINGMASTER_RUNTIME_NN_RUNNING_STATISTICS_H_

#include <cstdint>
#include <span>

#include "runtime/nn/model.h"

namespace ringmaster::nn {

// statistics *= samples: what a shard of so many samples puts into the sum.
void WeighStatistics(int64_t samples, std::span<float> statistics);

// state = momentum * state + (1 - momentum) * sum / batch, for each of the model's states. Both
// spans have model.state_floats.
void FoldStatistics(const Model& model, std::span<const float> weighted_sums, int64_t batch,
                    std::span<float> states);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_RUNNING_STATISTICS_H_

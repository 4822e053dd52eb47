// The sample stream: which sample stands at which place, for ever.
//
// A job with N training samples sees them in an endless stream: epoch 0's order, then epoch 1's,
// and so on. Position p holds place p mod N of epoch p / N, and the order of an epoch is a
// permutation keyed by (seed, epoch) alone. Step k of a job with batch B takes positions k*B to
// (k+1)*B - 1, so no batch is short, no sample is skipped at an epoch's end, and nothing depends on
// the number of workers. The position is also what keys every random number that belongs to a
// sample (dropout).
#ifndef RINGMASTER_RUNTIME_DATA_SAMPLE_STREAM_H_
#define RINGMASTER_RUNTIME_DATA_SAMPLE_STREAM_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::data {

// Not thread-safe: it keeps the orders of the two epochs used last (8 bytes per sample).
class SampleStream {
 public:
  // `samples` > 0.
  SampleStream(uint64_t seed, uint32_t samples) : seed_(seed), samples_(samples) {
    for (Order& order : orders_) order.rows.resize(samples);
  }

  // Writes the samples at positions first, first + 1, ... to `out`.
  // Takes time proportional to `out`, plus to the number of samples when an epoch begins.
  void Read(uint64_t first, std::span<uint32_t> out);

  uint32_t samples() const { return samples_; }

 private:
  struct Order {
    bool filled = false;
    uint64_t epoch = 0;
    std::vector<uint32_t> rows;
  };
  const std::vector<uint32_t>& OrderOf(uint64_t epoch);

  uint64_t seed_;
  uint32_t samples_;
  std::array<Order, 2> orders_;
};

// Half-open range of rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

// The rows of a batch that virtual shard `shard` of `shards` computes. The shards cover the batch
// in order and their sizes differ by at most one. Needs 0 <= shard < shards <= batch.
RowRange ShardRows(int64_t batch, int64_t shards, int64_t shard);

// The first of the positions that `step` takes.
inline uint64_t FirstPosition(uint64_t step, int64_t batch) {
  return step * static_cast<uint64_t>(batch);
}

// Steps of a run of `epochs` passes over `samples`: rounded up, so that every sample of the last
// pass is seen; the last batch is completed from the next pass's order.
uint64_t StepsForEpochs(double epochs, uint32_t samples, int64_t batch);

// Epochs that have been wholly or partly consumed after `steps` steps, e.g. 1.5.
double EpochsAfter(uint64_t steps, uint32_t samples, int64_t batch);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_SAMPLE_STREAM_H_

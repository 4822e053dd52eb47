#include "runtime/data/sample_stream.h"

#include <algorithm>
#include <cmath>

#include "runtime/tensor/random.h"

namespace ringmaster::data {

const std::vector<uint32_t>& SampleStream::OrderOf(uint64_t epoch) {
  // A batch may straddle two epochs, and so may the shards of a batch read one after another.
  Order& order = orders_[epoch % orders_.size()];
  if (!order.filled || order.epoch != epoch) {
    tensor::FillPermutation(order.rows, seed_, epoch);
    order.epoch = epoch;
    order.filled = true;
  }
  return order.rows;
}

void SampleStream::Read(uint64_t first, std::span<uint32_t> out) {
  uint64_t epoch = first / samples_;
  size_t place = static_cast<size_t>(first % samples_);
  while (!out.empty()) {
    const std::vector<uint32_t>& rows = OrderOf(epoch);
    const size_t count = std::min(out.size(), rows.size() - place);
    std::copy_n(rows.begin() + static_cast<ptrdiff_t>(place), count, out.begin());
    out = out.subspan(count);
    place = 0;
    ++epoch;
  }
}

RowRange ShardRows(int64_t batch, int64_t shards, int64_t shard) {
  return {batch * shard / shards, batch * (shard + 1) / shards};
}

uint64_t StepsForEpochs(double epochs, uint32_t samples, int64_t batch) {
  return static_cast<uint64_t>(std::ceil(epochs * samples / static_cast<double>(batch)));
}

double EpochsAfter(uint64_t steps, uint32_t samples, int64_t batch) {
  return static_cast<double>(steps) * static_cast<double>(batch) / samples;
}

}  // namespace ringmaster::data

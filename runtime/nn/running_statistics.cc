#include "runtime/nn/running_statistics.h"

namespace ringmaster::nn {

void WeighStatistics(int64_t samples, std::span<float> statistics) {
  for (float& statistic : statistics) statistic *= static_cast<float>(samples);
}

void FoldStatistics(const Model& model, std::span<const float> weighted_sums, int64_t batch,
                    std::span<float> states) {
  for (const State& state : model.states) {
    const auto keep = static_cast<float>(state.momentum);
    const auto take = static_cast<float>((1 - state.momentum) / static_cast<double>(batch));
    const size_t end = state.offset + static_cast<size_t>(state.shape.elements());
    for (size_t i = state.offset; i < end; ++i) {
      states[i] = keep * states[i] + take * weighted_sums[i];
    }
  }
}

}  // namespace ringmaster::nn

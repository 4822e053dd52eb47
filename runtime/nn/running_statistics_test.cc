#include "runtime/nn/running_statistics.h"

#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::nn {
namespace {

Model OneState(double momentum) {
  Model model;
  model.states = {{"bn.running_mean", {2}, 0, 0, "statistic/bn.running_mean", momentum}};
  model.state_floats = 16;
  return model;
}

TEST(RunningStatisticsTest, AShardCountsByItsSamples) {
  // Shards of three and one samples: means 1 and 5 make a batch mean of 2.
  std::vector<float> large(16, 1.0f), small(16, 5.0f), states(16, 10.0f);
  WeighStatistics(3, large);
  WeighStatistics(1, small);
  for (size_t i = 0; i < large.size(); ++i) large[i] += small[i];
  FoldStatistics(OneState(0.75), large, 4, states);
  EXPECT_FLOAT_EQ(states[0], 0.75f * 10 + 0.25f * 2);
  EXPECT_FLOAT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], 10.0f) << "floats between states stay";
}

TEST(RunningStatisticsTest, MomentumOneKeepsAndZeroReplaces) {
  const std::vector<float> sums(16, 8.0f);
  std::vector<float> kept(16, 3.0f), replaced(16, 3.0f);
  FoldStatistics(OneState(1), sums, 4, kept);
  FoldStatistics(OneState(0), sums, 4, replaced);
  EXPECT_EQ(kept[0], 3.0f);
  EXPECT_EQ(replaced[0], 2.0f);
}

}  // namespace
}  // namespace ringmaster::nn

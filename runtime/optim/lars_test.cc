#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

TEST(LarsTest, ScalesTheRateByTheNorms) {
  ExpectTrajectory(LarsConfig(2, 0.9, 0.01, 0.02), {{{0.96, -1.92, 0.48},
                                                     {0.913116337, -1.82623267, 0.545648241},
                                                     {0.936497849, -1.7489061, 0.554734704},
                                                     {0.91020345, -1.72415427, 0.608864405}}});
}

TEST(LarsTest, ScalesEachTensorByItselfAndLeavesOutWhatAGroupLeavesOut) {
  Config config = LarsConfig(0.5, 0.9, 0.01, 0.02);
  config.groups = {Biases(0.1)};
  ExpectTrajectory(config,
                   {{{0.99, -1.98, 0.4875},
                     {0.9711, -1.9422, 0.57625},
                     {0.974977476, -1.91040688, 0.618625},
                     {0.963460519, -1.89595033, 0.6817625}}},
                   WeightsAndBias());
}

TEST(LarsTest, StaysFiniteForGradientsThatAreNextToNothing) {
  auto optimizer = *MakeOptimizer(LarsConfig(12, 0.9, 0, 0.001), 3,
                                  std::vector<ParameterRange>{{"fc.weight", 0, 3}});
  std::vector<float> weights = {3, -2, 1};
  const std::vector<float> gradients = {1e-41F, 0, -2e-41F};
  optimizer->Update(weights, gradients, {.learning_rate = 12, .gradient_scale = 1});
  for (const float weight : weights) EXPECT_TRUE(std::isfinite(weight)) << weight;
}

TEST(LarsTest, TakesTheRateAsItIsForWeightsOrGradientsOfZero) {
  auto optimizer = *MakeOptimizer(LarsConfig(0.5, 0, 0.1, 0.02), 4,
                                  std::vector<ParameterRange>{{"a", 0, 2}, {"b", 2, 2}});
  std::array<float, 4> weights = {0, 0, 1, 2};
  const std::array<float, 4> gradient = {1, -1, 0, 0};
  optimizer->Update(weights, gradient, {0, 0.5, 1});
  EXPECT_EQ(weights, (std::array<float, 4>{-0.5f, 0.5f, 0.95f, 1.9f}));
}

}  // namespace
}  // namespace ringmaster::optim

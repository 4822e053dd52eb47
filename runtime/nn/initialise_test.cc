#include "runtime/nn/initialise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::nn {
namespace {

// Two drawn tensors and one constant, at aligned offsets.
Model TwoLayers() {
  Model model;
  model.parameters = {{"a.weight", {50, 41}, Initialiser::Uniform(0.5), 0},
                      {"a.bias", {3}, Initialiser::Constant(0.25), 2064},
                      {"b.weight", {50, 41}, Initialiser::Uniform(0.5), 2080}};
  model.parameter_floats = 4144;
  return model;
}

std::vector<float> Draw(const Model& model, uint64_t seed) {
  std::vector<float> weights(model.parameter_floats, 99.0f);
  InitialiseParameters(model, seed, weights);
  return weights;
}

TEST(InitialiseTest, DrawsWithinTheBoundWithTheVarianceOfAUniform) {
  const std::vector<float> weights = Draw(TwoLayers(), 7);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 2050; ++i) {
    ASSERT_LE(std::abs(weights[i]), 0.5f);
    sum += weights[i];
    squares += weights[i] * weights[i];
  }
  EXPECT_NEAR(sum / 2050, 0, 0.02);
  EXPECT_NEAR(squares / 2050, 0.25 / 3, 0.005);
}

TEST(InitialiseTest, DependsOnTheSeedAndTheNameAlone) {
  const Model model = TwoLayers();
  const std::vector<float> seven = Draw(model, 7);
  EXPECT_EQ(seven, Draw(model, 7));
  EXPECT_NE(seven, Draw(model, 8));
  const auto range = [&](size_t offset) {
    return std::vector<float>(seven.begin() + static_cast<ptrdiff_t>(offset),
                              seven.begin() + static_cast<ptrdiff_t>(offset) + 2050);
  };
  EXPECT_NE(range(0), range(2080));
  Model swapped = model;
  std::swap(swapped.parameters[0].offset, swapped.parameters[2].offset);
  const std::vector<float> moved = Draw(swapped, 7);
  EXPECT_TRUE(std::equal(seven.begin(), seven.begin() + 2050, moved.begin() + 2080));
}

TEST(InitialiseTest, WritesConstantsAndZerosBetweenTensors) {
  const std::vector<float> weights = Draw(TwoLayers(), 7);
  EXPECT_EQ(weights[2064], 0.25f);
  EXPECT_EQ(weights[2066], 0.25f);
  EXPECT_EQ(weights[2067], 0.0f);
  EXPECT_EQ(weights[2051], 0.0f);
}

TEST(InitialiseTest, StatesBeginAtTheirInitialValues) {
  Model model;
  model.states = {{"bn.running_mean", {2}, 0, 0}, {"bn.running_variance", {2}, 1, 16}};
  model.state_floats = 32;
  std::vector<float> states(32, 99.0f);
  InitialiseStates(model, states);
  EXPECT_EQ(states[0], 0.0f);
  EXPECT_EQ(states[16], 1.0f);
  EXPECT_EQ(states[17], 1.0f);
  EXPECT_EQ(states[18], 0.0f);
}

}  // namespace
}  // namespace ringmaster::nn

#include "runtime/optim/optimizer.h"

#include <array>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::optim {
namespace {

using Weights = std::array<float, 3>;
using Trajectory = std::array<std::array<double, 3>, 4>;
using Config = training::v1alpha1::Optimizer;

constexpr Weights kStart = {1.0f, -2.0f, 0.5f};
constexpr std::array<Weights, 4> kGradients = {
    {{0.5f, -1.0f, 0.25f}, {0.25f, -0.5f, -2.0f}, {-1.0f, 0.125f, 0.75f}, {0.5f, 0.5f, -0.5f}}};

Config SgdConfig(double rate, double momentum, bool nesterov, double decay) {
  Config config;
  config.sgd = training::v1alpha1::Sgd{rate, momentum, nesterov, decay};
  return config;
}

Config AdamConfig(double rate, double beta1, double beta2, double epsilon, double decay) {
  Config config;
  config.adam = training::v1alpha1::Adam{rate, beta1, beta2, epsilon, decay};
  return config;
}

// The weights after each of the four gradients, which arrive as sums over eight samples.
void ExpectTrajectory(const Config& config, const Trajectory& expected) {
  auto optimizer = MakeOptimizer(config, kStart.size());
  ASSERT_TRUE(optimizer.ok()) << Message(optimizer.status());
  Weights weights = kStart;
  for (size_t step = 0; step < kGradients.size(); ++step) {
    Weights sums = kGradients[step];
    for (float& sum : sums) sum *= 8;
    (*optimizer)->Update(weights, sums, {step, BaseLearningRate(config), 1.0 / 8});
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(weights[i], expected[step][i], 1e-6) << "step " << step << " weight " << i;
    }
  }
}

// The expected numbers of the trajectories were computed in double from the formulas in sgd.h and
// adam.h.

TEST(SgdTest, FollowsTheGradient) {
  ExpectTrajectory(SgdConfig(0.1, 0, false, 0), {{{0.95, -1.9, 0.475},
                                                  {0.925, -1.85, 0.675},
                                                  {1.025, -1.8625, 0.6},
                                                  {0.975, -1.9125, 0.65}}});
}

TEST(SgdTest, DecaysWeights) {
  ExpectTrajectory(SgdConfig(0.1, 0, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                     {0.923051, -1.846102, 0.6740255},
                                                     {1.02212795, -1.8567559, 0.598351474},
                                                     {0.971105821, -1.90489914, 0.647753123}}});
}

TEST(SgdTest, KeepsMomentum) {
  ExpectTrajectory(SgdConfig(0.1, 0.9, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                       {0.877151, -1.754302, 0.6510755},
                                                       {0.911609749, -1.6357195, 0.734342374},
                                                       {0.891711013, -1.57735953, 0.858548219}}});
}

TEST(SgdTest, LooksAheadWithNesterov) {
  ExpectTrajectory(SgdConfig(0.1, 0.9, true, 0.01), {{{0.9031, -1.8062, 0.45155},
                                                      {0.81257411, -1.62514822, 0.810037055},
                                                      {0.942869708, -1.52948942, 0.809042729},
                                                      {0.874075611, -1.5257031, 0.969839688}}});
}

TEST(SgdTest, RefusesNesterovWithoutMomentum) {
  EXPECT_EQ(MakeOptimizer(SgdConfig(0.1, 0, true, 0), 3).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AdamTest, FollowsThePublishedAlgorithm) {
  ExpectTrajectory(AdamConfig(0.01, 0.9, 0.999, 1e-8, 0),
                   {{{0.99, -1.99, 0.49},
                     {0.980678204, -1.9806782, 0.496553267},
                     {0.982741774, -1.97422755, 0.499071823},
                     {0.981964921, -1.97176302, 0.502398358}}});
}

TEST(AdamTest, AddsWeightDecayToTheGradient) {
  ExpectTrajectory(AdamConfig(0.05, 0.8, 0.95, 1e-3, 0.1),
                   {{{0.950083195, -1.95004163, 0.450166113},
                     {0.90304876, -1.90290467, 0.48379564},
                     {0.910718924, -1.86673533, 0.493306865},
                     {0.900485908, -1.84720812, 0.507545223}}});
}

TEST(AdamTest, RefusesABetaOfOne) {
  EXPECT_FALSE(MakeOptimizer(AdamConfig(0.1, 1, 0.999, 1e-8, 0), 3).ok());
  EXPECT_FALSE(MakeOptimizer(AdamConfig(0.1, 0.9, 1, 1e-8, 0), 3).ok());
}

TEST(OptimizerTest, RefusesAConfigurationWithoutAKind) {
  EXPECT_EQ(MakeOptimizer(Config(), 3).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OptimizerTest, NamesItsStateInAFixedOrder) {
  const auto names = [](const Config& config) {
    std::string joined;
    auto optimizer = MakeOptimizer(config, 5);
    for (const StateBuffer& buffer : (*optimizer)->state()) {
      EXPECT_EQ(buffer.values.size(), 5u);
      joined += buffer.name + " ";
    }
    return joined;
  };
  EXPECT_EQ(names(SgdConfig(0.1, 0, false, 0)), "");
  EXPECT_EQ(names(SgdConfig(0.1, 0.9, false, 0)), "momentum ");
  EXPECT_EQ(names(AdamConfig(0.1, 0.9, 0.999, 1e-8, 0)), "first_moment second_moment ");
}

// A size that is no multiple of a block or of a vector.
std::vector<float> Ramp(float from) {
  std::vector<float> values(10'007);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = from + 0.001f * static_cast<float>(i % 977);
  }
  return values;
}

TEST(OptimizerTest, RestoredStateContinuesWithTheSameBits) {
  for (const Config& config :
       {SgdConfig(0.1, 0.9, true, 0.01), AdamConfig(0.01, 0.9, 0.999, 1e-8, 0.01)}) {
    const std::vector<float> gradients = Ramp(-0.4f);
    std::vector<float> weights = Ramp(1);
    auto first = *MakeOptimizer(config, weights.size());
    for (uint64_t step = 0; step < 3; ++step) first->Update(weights, gradients, {step, 0.1, 0.5});
    auto second = *MakeOptimizer(config, weights.size());
    std::vector<float> resumed = weights;
    const auto from = first->state(), to = second->state();
    for (size_t i = 0; i < from.size(); ++i) {
      std::copy(from[i].values.begin(), from[i].values.end(), to[i].values.begin());
    }
    first->Update(weights, gradients, {3, 0.1, 0.5});
    second->Update(resumed, gradients, {3, 0.1, 0.5});
    EXPECT_EQ(std::memcmp(weights.data(), resumed.data(), weights.size() * sizeof(float)), 0);
  }
}

TEST(OptimizerTest, AWeightsBitsDoNotDependOnItsPlaceInTheBuffer) {
  for (const Config& config :
       {SgdConfig(0.1, 0.9, false, 0.01), AdamConfig(0.01, 0.9, 0.999, 1e-8, 0.01)}) {
    const std::vector<float> gradients = Ramp(-0.4f);
    std::vector<float> whole = Ramp(1);
    std::vector<float> tail(whole.begin() + 4099, whole.end());
    auto all = *MakeOptimizer(config, whole.size());
    auto part = *MakeOptimizer(config, tail.size());
    for (uint64_t step = 0; step < 3; ++step) {
      all->Update(whole, gradients, {step, 0.1, 0.5});
      part->Update(tail, std::span(gradients).subspan(4099), {step, 0.1, 0.5});
    }
    EXPECT_EQ(std::memcmp(whole.data() + 4099, tail.data(), tail.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace ringmaster::optim

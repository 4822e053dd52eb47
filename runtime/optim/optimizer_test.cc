#include "runtime/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/clip.h"

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

Config CaffeConfig(double rate, double momentum, bool nesterov, double decay) {
  Config config = SgdConfig(rate, momentum, nesterov, decay);
  config.sgd->form = training::v1alpha1::SgdForm::kCaffe;
  return config;
}

Config AdamWConfig(double rate, double beta1, double beta2, double epsilon, double decay) {
  Config config;
  config.adam_w = training::v1alpha1::AdamW{rate, beta1, beta2, epsilon, decay};
  return config;
}

Config LarsConfig(double rate, double momentum, double decay, double trust) {
  Config config;
  config.lars = training::v1alpha1::Lars{rate, momentum, decay, trust};
  return config;
}

Config LambConfig(double rate, double decay) {
  Config config;
  config.lamb = training::v1alpha1::Lamb{.learning_rate = rate, .weight_decay = decay};
  return config;
}

// Biases learn at `rate_factor` times the rate, without decay and without a layer's rate of their
// own.
training::v1alpha1::ParameterGroup Biases(double rate_factor) {
  return {.roles = {training::v1alpha1::ParameterRole::kBias},
          .learning_rate_factor = rate_factor,
          .weight_decay_factor = 0,
          .layer_wise = false};
}

Config AdamConfig(double rate, double beta1, double beta2, double epsilon, double decay) {
  Config config;
  config.adam = training::v1alpha1::Adam{rate, beta1, beta2, epsilon, decay};
  return config;
}

// A layer of two weights and one bias.
std::vector<ParameterRange> WeightsAndBias() {
  return {{"fc.weight", 0, 2}, {"fc.bias", 2, 1}};
}

// The weights after each of the four gradients, which arrive as sums over eight samples. `decay` is
// what the learning rate is multiplied by from one step to the next.
void ExpectTrajectory(const Config& config, const Trajectory& expected,
                      const std::vector<ParameterRange>& parameters = {}, double decay = 1) {
  auto optimizer = MakeOptimizer(config, kStart.size(), parameters);
  ASSERT_TRUE(optimizer.ok()) << Message(optimizer.status());
  Weights weights = kStart;
  double rate = BaseLearningRate(config);
  for (size_t step = 0; step < kGradients.size(); ++step, rate *= decay) {
    Weights sums = kGradients[step];
    for (float& sum : sums) sum *= 8;
    (*optimizer)->Update(weights, sums, {step, rate, 1.0 / 8});
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(weights[i], expected[step][i], 1e-6) << "step " << step << " weight " << i;
    }
  }
}

// The expected numbers of the trajectories were computed in double from the formulas in the
// headers.

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

TEST(SgdTest, OfCaffesFormIsTheSameWhileTheRateIs) {
  ExpectTrajectory(CaffeConfig(0.1, 0.9, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                         {0.877151, -1.754302, 0.6510755},
                                                         {0.911609749, -1.6357195, 0.734342375},
                                                         {0.891711013, -1.57735953, 0.858548219}}});
  ExpectTrajectory(CaffeConfig(0.1, 0.9, true, 0.01), {{{0.9031, -1.8062, 0.45155},
                                                        {0.81257411, -1.62514822, 0.810037055},
                                                        {0.942869708, -1.52948942, 0.809042729},
                                                        {0.874075611, -1.5257031, 0.969839688}}});
}

TEST(SgdTest, OfCaffesFormRemembersTheRatesOfItsSteps) {
  ExpectTrajectory(CaffeConfig(0.1, 0.9, false, 0.01),
                   {{{0.949, -1.898, 0.4745},
                     {0.8901255, -1.780251, 0.55131275},
                     {0.861915919, -1.67695684, 0.601556397},
                     {0.830169556, -1.59003247, 0.652950484}}},
                   {}, /*decay=*/0.5);
}

TEST(AdamWTest, DecaysWeightsBesideTheMoments) {
  ExpectTrajectory(AdamWConfig(0.05, 0.8, 0.95, 1e-3, 0.1),
                   {{{0.9450998, -1.94004995, 0.447699203},
                     {0.894458549, -1.88437549, 0.480091053},
                     {0.904619348, -1.84554166, 0.489041644},
                     {0.896980716, -1.82980544, 0.502854622}}});
}

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

TEST(LambTest, FollowsThePublishedAlgorithm) {
  ExpectTrajectory(LambConfig(0.02, 0.1), {{{0.973977916, -1.97161224, 0.475160788},
                                            {0.945809537, -1.94071438, 0.491790002},
                                            {0.951496031, -1.89802409, 0.50210099},
                                            {0.93772624, -1.86326754, 0.524603294}}});
}

TEST(LambTest, ScalesEachTensorByItselfAndLeavesOutWhatAGroupLeavesOut) {
  Config config = LambConfig(0.02, 0.1);
  config.groups = {Biases(0.5)};
  ExpectTrajectory(config,
                   {{{0.969780692, -1.96703345, 0.49000004},
                     {0.940230347, -1.93461964, 0.496553302},
                     {0.945942508, -1.89198062, 0.499071856},
                     {0.930384949, -1.85263953, 0.502398388}}},
                   WeightsAndBias());
}

TEST(GroupTest, HasARateAndADecayOfItsOwn) {
  Config config = SgdConfig(0.1, 0.9, false, 0.01);
  config.groups = {Biases(2)};
  ExpectTrajectory(config,
                   {{{0.949, -1.898, 0.45},
                     {0.877151, -1.754302, 0.805},
                     {0.911609749, -1.6357195, 0.9745},
                     {0.891711013, -1.57735953, 1.22705}}},
                   WeightsAndBias());
}

// The names of those parameters that a group with a rate of zero holds.
std::string FrozenBy(const training::v1alpha1::ParameterGroup& group) {
  const std::vector<ParameterRange> parameters = {{"conv1.weight", 0, 1},
                                                  {"conv1.bias", 16, 1},
                                                  {"bn1.gamma", 32, 1},
                                                  {"bn1.beta", 48, 1},
                                                  {"layer1.0.fc.weight", 64, 1}};
  Config config = SgdConfig(1, 0, false, 0);
  config.groups = {group};
  config.groups[0].learning_rate_factor = 0;
  auto optimizer = MakeOptimizer(config, 80, parameters);
  if (!optimizer.ok()) return Message(optimizer.status());
  std::vector<float> weights(80), gradient(80, 1.0f);
  (*optimizer)->Update(weights, gradient, {0, 1, 1});
  std::string frozen;
  for (const ParameterRange& p : parameters) {
    if (weights[p.offset] == 0) frozen += p.name + " ";
  }
  return frozen;
}

TEST(GroupTest, IsFoundByNamesWithStarsAndByRoles) {
  using training::v1alpha1::ParameterRole;
  EXPECT_EQ(FrozenBy({.names = {"conv1.*"}}), "conv1.weight conv1.bias ");
  EXPECT_EQ(FrozenBy({.names = {"*1*.weight"}}), "conv1.weight layer1.0.fc.weight ");
  EXPECT_EQ(FrozenBy({.names = {"bn1.beta", "l*c.w**t"}}), "bn1.beta layer1.0.fc.weight ");
  EXPECT_EQ(FrozenBy({.roles = {ParameterRole::kBias}}), "conv1.bias ");
  EXPECT_EQ(FrozenBy({.roles = {ParameterRole::kNorm}}), "bn1.gamma bn1.beta ");
  EXPECT_EQ(FrozenBy({.names = {"*.fc.*"}, .roles = {ParameterRole::kNorm, ParameterRole::kBias}}),
            "conv1.bias bn1.gamma bn1.beta layer1.0.fc.weight ");
}

TEST(GroupTest, OfNoParameterIsRefusedWithTheNamesThatThereAre) {
  EXPECT_EQ(FrozenBy({.names = {"conv1"}}),
            "optimizer.groups[0]: no parameter of the network belongs to it; there are "
            "conv1.weight, conv1.bias, bn1.gamma, bn1.beta, layer1.0.fc.weight");
}

TEST(GroupTest, TheFirstThatAParameterBelongsToCounts) {
  Config config = SgdConfig(1, 0, false, 0);
  config.groups = {{.names = {"fc.bias"}, .learning_rate_factor = 0.5},
                   {.names = {"fc.*"}, .learning_rate_factor = 0.25}};
  auto optimizer = *MakeOptimizer(config, 3, WeightsAndBias());
  Weights weights = {0, 0, 0};
  optimizer->Update(weights, Weights{1, 1, 1}, {0, 1, 1});
  EXPECT_EQ(weights, (Weights{-0.25f, -0.25f, -0.5f}));
}

TEST(ClipTest, ScalesALongGradientToTheNorm) {
  Config config = SgdConfig(0.1, 0, false, 0.01);
  config.clip = training::v1alpha1::Clip{.global_norm = 1};
  ExpectTrajectory(config, {{{0.955356422, -1.91071284, 0.477678211},
                             {0.94236248, -1.88472496, 0.573509215},
                             {1.02102309, -1.89279061, 0.513233475},
                             {0.97000207, -1.94089782, 0.562720241}}});
}

TEST(ClipTest, CutsEachValue) {
  Config config = SgdConfig(0.1, 0, false, 0.01);
  config.clip = training::v1alpha1::Clip{.value = 0.5};
  ExpectTrajectory(config, {{{0.949, -1.948, 0.4745},
                             {0.923051, -1.896052, 0.5240255},
                             {0.972127949, -1.90665595, 0.473501475},
                             {0.921155821, -1.95474929, 0.523027973}}});
}

TEST(ClipTest, LeavesTheBitsOfAGradientWithinTheBoundAsTheyAre) {
  const std::array<training::v1alpha1::Clip, 2> clips = {{{.global_norm = 100}, {.value = 100}}};
  for (const auto& clip : clips) {
    Config config = SgdConfig(0.1, 0, false, 0.01);
    auto plain = *MakeOptimizer(config, 3);
    config.clip = clip;
    auto clipped = *MakeOptimizer(config, 3);
    Weights a = kStart, b = kStart;
    plain->Update(a, kGradients[1], {0, 0.1, 0.3});
    clipped->Update(b, kGradients[1], {0, 0.1, 0.3});
    EXPECT_EQ(std::memcmp(a.data(), b.data(), sizeof(a)), 0);
  }
}

TEST(OptimizerTest, MultipliesItsWeightDecayByTheStepsFactor) {
  for (const auto& [config, with_half] :
       {std::pair{SgdConfig(0.1, 0.9, false, 0.02), SgdConfig(0.1, 0.9, false, 0.01)},
        std::pair{CaffeConfig(0.1, 0.9, false, 0.02), CaffeConfig(0.1, 0.9, false, 0.01)},
        std::pair{AdamConfig(0.1, 0.9, 0.99, 1e-8, 0.02), AdamConfig(0.1, 0.9, 0.99, 1e-8, 0.01)},
        std::pair{AdamWConfig(0.1, 0.9, 0.99, 1e-8, 0.02), AdamWConfig(0.1, 0.9, 0.99, 1e-8, 0.01)},
        std::pair{LarsConfig(0.1, 0.9, 0.02, 0.01), LarsConfig(0.1, 0.9, 0.01, 0.01)},
        std::pair{LambConfig(0.1, 0.02), LambConfig(0.1, 0.01)}}) {
    auto halved = *MakeOptimizer(config, 3), other = *MakeOptimizer(with_half, 3);
    Weights a = kStart, b = kStart;
    for (uint64_t step = 0; step < 2; ++step) {
      halved->Update(a, kGradients[step], {step, 0.1, 1, /*weight_decay_factor=*/0.5});
      other->Update(b, kGradients[step], {step, 0.1, 1});
    }
    EXPECT_EQ(a, b);
    EXPECT_EQ(BaseWeightDecay(config), 0.02);
  }
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
  EXPECT_FALSE(MakeOptimizer(AdamWConfig(0.1, 1, 0.9, 1e-8, 0), 3).ok());
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
  // In Caffe's form it holds something else, so a checkpoint of the other form does not fit.
  EXPECT_EQ(names(CaffeConfig(0.1, 0.9, false, 0)), "velocity ");
  EXPECT_EQ(names(LarsConfig(0.1, 0.9, 0, 0.01)), "velocity ");
  for (const Config& config : {AdamConfig(0.1, 0.9, 0.999, 1e-8, 0),
                               AdamWConfig(0.1, 0.9, 0.999, 1e-8, 0), LambConfig(0.1, 0)})
    EXPECT_EQ(names(config), "first_moment second_moment ");
}

// A size that is no multiple of a block or of a vector.
std::vector<float> Ramp(float from) {
  std::vector<float> values(10'007);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = from + 0.001f * static_cast<float>(i % 977);
  }
  return values;
}

std::vector<Config> EveryKind() {
  return {SgdConfig(0.1, 0, false, 0.01),
          SgdConfig(0.1, 0.9, false, 0.01),
          SgdConfig(0.1, 0.9, true, 0.01),
          CaffeConfig(0.1, 0.9, false, 0.01),
          CaffeConfig(0.1, 0.9, true, 0.01),
          AdamConfig(0.01, 0.9, 0.999, 1e-8, 0.01),
          AdamWConfig(0.01, 0.9, 0.999, 1e-8, 0.01),
          LarsConfig(0.1, 0.9, 0.01, 0.1),
          LambConfig(0.1, 0.01)};
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// So many that the blocks whose sums are added at once are full, and some are left.
std::vector<float> LongRamp(float from) {
  std::vector<float> values(size_t{513} * 4096 + 1234);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = from + 0.001f * static_cast<float>(i % 1777);
  return values;
}

// As one pass after another has it: the cut gradient in memory of its own, then the update.
TEST(ClipTest, CutsValuesInTheUpdateWithTheBitsOfAPassBeforeIt) {
  const std::vector<float> sums = Ramp(-0.4f);
  constexpr float kScale = 0.3f, kBound = 0.1f;
  std::vector<float> cut = sums;
  for (float& value : cut) value = std::clamp(kScale * value, -kBound, kBound);
  for (Config config : EveryKind()) {
    auto plain = *MakeOptimizer(config, sums.size());
    config.clip = training::v1alpha1::Clip{.value = kBound};
    auto clipped = *MakeOptimizer(config, sums.size());
    std::vector<float> expected = Ramp(1), weights = Ramp(1);
    for (uint64_t step = 0; step < 3; ++step) {
      plain->Update(expected, cut, {step, 0.1, 1});
      clipped->Update(weights, sums, {step, 0.1, kScale});
    }
    EXPECT_TRUE(SameBits(weights, expected));
  }
}

// The sum of squares as it is added: lanes of a block, lane after lane, then block after block.
double Squares(const std::vector<float>& values) {
  double sum = 0;
  for (size_t block = 0; block < values.size(); block += 4096) {
    std::array<double, 8> lanes{};
    const size_t end = std::min(block + 4096, values.size());
    for (size_t i = block; i < end; ++i)
      lanes[(i - block) % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    double of_block = 0;
    for (const double lane : lanes) of_block += lane;
    sum += of_block;
  }
  return sum;
}

TEST(ClipTest, ScalesToTheNormInTheUpdate) {
  const std::vector<float> sums = LongRamp(-0.4f);
  constexpr double kScale = 0.3, kBound = 0.5;
  const double norm = kScale * std::sqrt(Squares(sums));
  for (Config config : EveryKind()) {
    auto plain = *MakeOptimizer(config, sums.size());
    config.clip = training::v1alpha1::Clip{.global_norm = kBound};
    auto clipped = *MakeOptimizer(config, sums.size());
    std::vector<float> expected = LongRamp(1), weights = LongRamp(1);
    plain->Update(expected, sums, {0, 0.1, kScale * (kBound / norm)});
    clipped->Update(weights, sums, {0, 0.1, kScale});
    EXPECT_TRUE(SameBits(weights, expected));
  }
}

TEST(ClipTest, TakesTheSumOfSquaresThatItIsGiven) {
  const std::vector<float> sums = Ramp(-0.4f);
  Config config = SgdConfig(0.1, 0, false, 0);
  config.clip = training::v1alpha1::Clip{.global_norm = 0.5};
  auto clipped = *MakeOptimizer(config, sums.size());
  const auto updated = [&](std::optional<double> squares) {
    std::vector<float> weights = Ramp(1);
    clipped->Update(weights, sums, {.learning_rate = 0.1, .sum_of_squares = squares});
    return weights;
  };
  EXPECT_TRUE(SameBits(updated(SumOfSquares(sums)), updated(std::nullopt)));
  EXPECT_FALSE(SameBits(updated(4 * SumOfSquares(sums)), updated(std::nullopt)));
}

TEST(ClipTest, ASumOfSquaresIsANumberIfAllGradientsAre) {
  std::vector<float> sums(10'007, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(SumOfSquares(sums)));
  for (const float odd :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t place : {size_t{0}, size_t{4097}, sums.size() - 1}) {
      const float before = std::exchange(sums[place], odd);
      EXPECT_FALSE(std::isfinite(SumOfSquares(sums)));
      sums[place] = before;
    }
  }
}

// Moments, both norms and the step, each in a pass of its own.
TEST(LambTest, HasTheBitsOfOnePassAfterAnother) {
  const std::vector<float> sums = LongRamp(-0.4f);
  const size_t size = sums.size();
  auto optimizer = *MakeOptimizer(LambConfig(0.1, 0.01), size);
  std::vector<float> weights = LongRamp(1), expected = LongRamp(1), m(size), v(size), r(size);
  const training::v1alpha1::Lamb lamb;
  const auto beta1 = static_cast<float>(lamb.beta1), rest1 = static_cast<float>(1 - lamb.beta1);
  const auto beta2 = static_cast<float>(lamb.beta2), rest2 = static_cast<float>(1 - lamb.beta2);
  double power1 = 1, power2 = 1;
  for (uint64_t step = 0; step < 2; ++step) {
    power1 *= lamb.beta1;
    power2 *= lamb.beta2;
    const auto first = static_cast<float>(1 / (1 - power1));
    const auto second = static_cast<float>(1 / std::sqrt(1 - power2));
    for (size_t i = 0; i < size; ++i) {
      const float g = 0.25f * sums[i];
      m[i] = beta1 * m[i] + rest1 * g;
      v[i] = beta2 * v[i] + rest2 * g * g;
    }
    for (size_t i = 0; i < size; ++i) {
      r[i] = first * m[i] / (std::sqrt(v[i]) * second + static_cast<float>(lamb.epsilon)) +
             0.01f * expected[i];
    }
    const double ratio = std::sqrt(Squares(expected)) / std::sqrt(Squares(r));
    const auto rate = static_cast<float>(0.1 * ratio);
    for (size_t i = 0; i < size; ++i) expected[i] -= rate * r[i];
    optimizer->Update(weights, sums, {step, 0.1, 0.25});
    EXPECT_TRUE(SameBits(weights, expected)) << step;
  }
}

TEST(OptimizerTest, RestoredStateContinuesWithTheSameBits) {
  for (const Config& config :
       {SgdConfig(0.1, 0.9, true, 0.01), CaffeConfig(0.1, 0.9, true, 0.01),
        AdamConfig(0.01, 0.9, 0.999, 1e-8, 0.01), AdamWConfig(0.01, 0.9, 0.999, 1e-8, 0.01),
        LarsConfig(0.1, 0.9, 0.01, 0.1), LambConfig(0.1, 0.01)}) {
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
       {SgdConfig(0.1, 0.9, false, 0.01), CaffeConfig(0.1, 0.9, false, 0.01),
        AdamConfig(0.01, 0.9, 0.999, 1e-8, 0.01), AdamWConfig(0.01, 0.9, 0.999, 1e-8, 0.01)}) {
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

TEST(OptimizerTest, SaysWhatItTakesBeforeItIsMade) {
  constexpr size_t kSize = 1000;
  Config adam, custom, by_value = SgdConfig(0.1, 0.9, false, 0),
                       grouped = SgdConfig(0.1, 0, false, 0);
  adam.adam.emplace();
  custom.custom.emplace();
  by_value.clip.emplace().value = 1;
  grouped.groups = {Biases(2)};
  EXPECT_EQ(FloatsFor(grouped, kSize), 0U);
  EXPECT_EQ(FloatsFor(custom, kSize), 0U);
  EXPECT_EQ(FloatsFor(by_value, kSize), kSize);
  for (const Config& config :
       {SgdConfig(0.1, 0, false, 0), SgdConfig(0.1, 0.9, true, 0), CaffeConfig(0.1, 0.9, false, 0),
        adam, AdamWConfig(0.1, 0.9, 0.99, 1e-8, 0), LarsConfig(0.1, 0.9, 0, 1),
        LambConfig(0.1, 0)}) {
    size_t kept = 0;
    for (const StateBuffer& buffer : MakeOptimizer(config, kSize).value()->state())
      kept += buffer.values.size();
    EXPECT_EQ(FloatsFor(config, kSize), kept);
  }
}

}  // namespace
}  // namespace ringmaster::optim

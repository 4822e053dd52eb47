#include "runtime/optim/clip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

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

}  // namespace
}  // namespace ringmaster::optim

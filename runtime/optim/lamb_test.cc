#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

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

}  // namespace
}  // namespace ringmaster::optim

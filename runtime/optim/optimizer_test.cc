#include "runtime/optim/optimizer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

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

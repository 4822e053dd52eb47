// What the tests of optimizers share: their configurations, weights and gradients.
#ifndef RINGMASTER_RUNTIME_OPTIM_TESTING_H_
#define RINGMASTER_RUNTIME_OPTIM_TESTING_H_

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::optim {

using Weights = std::array<float, 3>;
using Trajectory = std::array<std::array<double, 3>, 4>;
using Config = training::v1alpha1::Optimizer;

inline constexpr Weights kStart = {1.0f, -2.0f, 0.5f};
inline constexpr std::array<Weights, 4> kGradients = {
    {{0.5f, -1.0f, 0.25f}, {0.25f, -0.5f, -2.0f}, {-1.0f, 0.125f, 0.75f}, {0.5f, 0.5f, -0.5f}}};

inline Config SgdConfig(double rate, double momentum, bool nesterov, double decay) {
  Config config;
  config.sgd = training::v1alpha1::Sgd{rate, momentum, nesterov, decay};
  return config;
}

inline Config CaffeConfig(double rate, double momentum, bool nesterov, double decay) {
  Config config = SgdConfig(rate, momentum, nesterov, decay);
  config.sgd->form = training::v1alpha1::SgdForm::kCaffe;
  return config;
}

inline Config AdamWConfig(double rate, double beta1, double beta2, double epsilon, double decay) {
  Config config;
  config.adam_w = training::v1alpha1::AdamW{rate, beta1, beta2, epsilon, decay};
  return config;
}

inline Config AdamConfig(double rate, double beta1, double beta2, double epsilon, double decay) {
  Config config;
  config.adam = training::v1alpha1::Adam{rate, beta1, beta2, epsilon, decay};
  return config;
}

inline Config LarsConfig(double rate, double momentum, double decay, double trust) {
  Config config;
  config.lars = training::v1alpha1::Lars{rate, momentum, decay, trust};
  return config;
}

inline Config LambConfig(double rate, double decay) {
  Config config;
  config.lamb = training::v1alpha1::Lamb{.learning_rate = rate, .weight_decay = decay};
  return config;
}

// Biases learn at `rate_factor` times the rate, without decay and without a layer's rate of their
// own.
inline training::v1alpha1::ParameterGroup Biases(double rate_factor) {
  return {.roles = {training::v1alpha1::ParameterRole::kBias},
          .learning_rate_factor = rate_factor,
          .weight_decay_factor = 0,
          .layer_wise = false};
}

// A layer of two weights and one bias.
inline std::vector<ParameterRange> WeightsAndBias() {
  return {{"fc.weight", 0, 2}, {"fc.bias", 2, 1}};
}

// The weights after each of the four gradients, which arrive as sums over eight samples. `decay` is
// what the learning rate is multiplied by from one step to the next. The expected numbers were
// computed in double from the formulas in the headers.
inline void ExpectTrajectory(const Config& config, const Trajectory& expected,
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

// A size that is no multiple of a block or of a vector.
inline std::vector<float> Ramp(float from) {
  std::vector<float> values(10'007);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = from + 0.001f * static_cast<float>(i % 977);
  }
  return values;
}

// So many that the blocks whose sums are added at once are full, and some are left.
inline std::vector<float> LongRamp(float from) {
  std::vector<float> values(size_t{513} * 4096 + 1234);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = from + 0.001f * static_cast<float>(i % 1777);
  return values;
}

inline std::vector<Config> EveryKind() {
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

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The sum of squares as it is added: lanes of a block, lane after lane, then block after block.
inline double Squares(const std::vector<float>& values) {
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

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_TESTING_H_

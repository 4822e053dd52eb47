// A thousand steps of each optimizer beside the published formulas, written out here in double, on
// three tensors whose gradients come from their own weights: what one of them gets wrong grows.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

constexpr uint64_t kSteps = 1000;
constexpr double kRate = 0.02;
constexpr double kDecay = 0.01;
constexpr double kMomentum = 0.9;
constexpr double kTrust = 0.05;
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-6;  // LAMB's own, too

using Numbers = std::vector<double>;

std::vector<ParameterRange> Tensors() {
  return {{"a.weight", 0, 30}, {"b.weight", 30, 17}, {"b.bias", 47, 3}};
}
constexpr size_t kSize = 50;

// The slope of a bowl of another width along each axis, that rocks.
double Slope(uint64_t step, size_t i, double weight) {
  const auto axis = static_cast<double>(i);
  const double width = 0.2 + 0.04 * axis;
  const double rocking = 0.1 * std::sin(0.37 * static_cast<double>(step) + axis);
  return width * (weight - std::cos(axis)) + rocking;
}

double RateOf(uint64_t step) {
  return step < 600 ? kRate : kRate / 10;
}

double Start(size_t i) {
  return 2 * std::sin(1.7 * static_cast<double>(i) + 0.5);
}

double Norm(const Numbers& values, const ParameterRange& tensor) {
  double squares = 0;
  for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i)
    squares += values[i] * values[i];
  return std::sqrt(squares);
}

// What a formula keeps from step to step.
struct Memory {
  Numbers v = Numbers(kSize);
  Numbers m = Numbers(kSize);
};

// Changes the weights by the gradients of one step.
using Formula = std::function<void(uint64_t step, const Numbers& g, Numbers& w, Memory& memory)>;

Formula SgdOfPyTorch(double momentum, bool nesterov) {
  return [=](uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
    for (size_t i = 0; i < kSize; ++i) {
      const double d = g[i] + kDecay * w[i];
      memory.v[i] = momentum * memory.v[i] + d;
      w[i] -= RateOf(step) * (nesterov ? d + momentum * memory.v[i] : memory.v[i]);
    }
  };
}

Formula SgdOfCaffe(bool nesterov) {
  return [=](uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
    for (size_t i = 0; i < kSize; ++i) {
      const double before = memory.v[i];
      memory.v[i] = kMomentum * before + RateOf(step) * (g[i] + kDecay * w[i]);
      w[i] -= nesterov ? (1 + kMomentum) * memory.v[i] - kMomentum * before : memory.v[i];
    }
  };
}

// The step of Adam, without its rate.
double Direction(uint64_t step, size_t i, double g, Memory& memory) {
  const auto t = static_cast<double>(step + 1);
  memory.m[i] = kBeta1 * memory.m[i] + (1 - kBeta1) * g;
  memory.v[i] = kBeta2 * memory.v[i] + (1 - kBeta2) * g * g;
  return memory.m[i] / (1 - std::pow(kBeta1, t)) /
         (std::sqrt(memory.v[i] / (1 - std::pow(kBeta2, t))) + kEpsilon);
}

void AdamFormula(uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
  for (size_t i = 0; i < kSize; ++i)
    w[i] -= RateOf(step) * Direction(step, i, g[i] + kDecay * w[i], memory);
}

void AdamWFormula(uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
  for (size_t i = 0; i < kSize; ++i) {
    w[i] -= RateOf(step) * kDecay * w[i];
    w[i] -= RateOf(step) * Direction(step, i, g[i], memory);
  }
}

void LarsFormula(uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
  for (const ParameterRange& tensor : Tensors()) {
    const double size = Norm(w, tensor);
    const double ratio = kTrust * size / (Norm(g, tensor) + kDecay * size);
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      memory.v[i] = kMomentum * memory.v[i] + RateOf(step) * ratio * (g[i] + kDecay * w[i]);
      w[i] -= memory.v[i];
    }
  }
}

void LambFormula(uint64_t step, const Numbers& g, Numbers& w, Memory& memory) {
  Numbers r(kSize);
  for (size_t i = 0; i < kSize; ++i) r[i] = Direction(step, i, g[i], memory) + kDecay * w[i];
  for (const ParameterRange& tensor : Tensors()) {
    const double ratio = Norm(w, tensor) / Norm(r, tensor);
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i)
      w[i] -= RateOf(step) * ratio * r[i];
  }
}

struct Case {
  std::string name;
  Config config;
  Formula formula;
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.name;
}

class TrajectoryTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Optimizers, TrajectoryTest,
    ::testing::Values(
        Case{"Sgd", SgdConfig(kRate, 0, false, kDecay), SgdOfPyTorch(0, false)},
        Case{"Momentum", SgdConfig(kRate, kMomentum, false, kDecay),
             SgdOfPyTorch(kMomentum, false)},
        Case{"Nesterov", SgdConfig(kRate, kMomentum, true, kDecay), SgdOfPyTorch(kMomentum, true)},
        Case{"CaffesMomentum", CaffeConfig(kRate, kMomentum, false, kDecay), SgdOfCaffe(false)},
        Case{"CaffesNesterov", CaffeConfig(kRate, kMomentum, true, kDecay), SgdOfCaffe(true)},
        Case{"Adam", AdamConfig(kRate, kBeta1, kBeta2, kEpsilon, kDecay), AdamFormula},
        Case{"AdamW", AdamWConfig(kRate, kBeta1, kBeta2, kEpsilon, kDecay), AdamWFormula},
        Case{"Lars", LarsConfig(kRate, kMomentum, kDecay, kTrust), LarsFormula},
        Case{"Lamb", LambConfig(kRate, kDecay), LambFormula}),
    [](const auto& info) { return info.param.name; });

TEST_P(TrajectoryTest, IsThePublishedFormulasForAThousandSteps) {
  constexpr double kTolerance = 1e-4;
  constexpr double kSamples = 8;  // gradients arrive as sums over so many
  auto optimizer = MakeOptimizer(GetParam().config, kSize, Tensors());
  ASSERT_TRUE(optimizer.ok()) << Message(optimizer.status());
  std::vector<float> weights(kSize);
  Numbers want(kSize);
  for (size_t i = 0; i < kSize; ++i) want[i] = weights[i] = static_cast<float>(Start(i));
  Memory memory;
  std::vector<float> sums(kSize);
  Numbers gradients(kSize);
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < kSize; ++i) {
      sums[i] = static_cast<float>(kSamples * Slope(step, i, static_cast<double>(weights[i])));
      gradients[i] = Slope(step, i, want[i]);
    }
    (*optimizer)
        ->Update(weights, sums,
                 {.step = step, .learning_rate = RateOf(step), .gradient_scale = 1 / kSamples});
    GetParam().formula(step, gradients, want, memory);
    for (size_t i = 0; i < kSize; ++i)
      ASSERT_NEAR(weights[i], want[i], kTolerance) << "step " << step << ", weight " << i;
  }
  for (size_t i = 0; i < kSize; ++i)
    EXPECT_GT(std::abs(want[i] - Start(i)), kTolerance) << "weight " << i << " has not moved";
}

}  // namespace
}  // namespace ringmaster::optim

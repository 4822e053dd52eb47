// Every network of the zoo learns, made thin and on small images: one batch by heart.
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/graph/executor.h"
#include "runtime/nn/binding.h"
#include "runtime/nn/initialise.h"
#include "runtime/nn/zoo.h"
#include "runtime/tensor/random.h"

namespace ringmaster {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr uint64_t kSeed = 7;
constexpr int64_t kBatch = 8;
constexpr int64_t kClasses = 4;
constexpr int64_t kWindow = 12;  // of text

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(Message(value.status()));
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(Message(status));
}

struct Recipe {
  nn::ZooSettings network;
  int64_t side;  // of the images; 0: text
};

void PrintTo(const Recipe& recipe, std::ostream* os) {
  *os << recipe.network.name;
}

nn::BuildOptions OptionsFor(const Recipe& recipe) {
  nn::BuildOptions options{.batch = kBatch, .classes = kClasses};
  if (recipe.side > 0) {
    options.sample = {{1, recipe.side, recipe.side}, DType::kF32};
  } else {
    options.sample = {{kWindow}, DType::kI32};
    options.label_shape = {kWindow};
  }
  return options;
}

// Images are bright in their class's quadrant, under noise; text counts to four, and the next token
// is the label.
void FillBatch(Tensor& inputs, Tensor& labels) {
  tensor::RandomStream noise({.seed = kSeed, .domain = tensor::RandomDomain::kAugmentation});
  if (inputs.dtype() == DType::kI32) {
    for (int64_t i = 0; i < inputs.elements(); ++i) {
      inputs.data<int32_t>()[i] = static_cast<int32_t>((i / kWindow + i % kWindow) % kClasses);
      labels.data<int32_t>()[i] = (inputs.data<int32_t>()[i] + 1) % kClasses;
    }
    return;
  }
  const int64_t side = inputs.shape().dim(-1);
  for (int64_t i = 0; i < inputs.elements(); ++i) {
    const int64_t label = i / (side * side) % kClasses, place = i % (side * side);
    const int64_t quadrant = 2 * (2 * (place / side) / side) + 2 * (place % side) / side;
    inputs.data<float>()[i] =
        tensor::ToUniform(noise.Next()) - 0.5f + (quadrant == label ? 1.0f : 0.0f);
    labels.data<int32_t>()[i / (side * side)] = static_cast<int32_t>(label);
  }
}

// Kingma and Ba's, with a rate that suits every network here and no regard to the batch's size.
class Adam {
 public:
  explicit Adam(size_t size) : first_(size), second_(size) {}

  void Update(std::vector<float>& weights, const std::vector<float>& gradients) {
    constexpr double kRate = 0.002, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
    ++step_;
    const double unbias1 = 1 - std::pow(kBeta1, step_), unbias2 = 1 - std::pow(kBeta2, step_);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double g = gradients[i];
      first_[i] = kBeta1 * first_[i] + (1 - kBeta1) * g;
      second_[i] = kBeta2 * second_[i] + (1 - kBeta2) * g * g;
      const double step = first_[i] / unbias1 / (std::sqrt(second_[i] / unbias2) + kEpsilon);
      weights[i] -= static_cast<float>(kRate * step);
    }
  }

 private:
  std::vector<double> first_, second_;
  int step_ = 0;
};

class ZooLearningTest : public ::testing::TestWithParam<Recipe> {};

TEST_P(ZooLearningTest, TheLossFalls) {
  constexpr int kSteps = 16;
  const nn::Model model = Must(nn::BuildZoo(GetParam().network, OptionsFor(GetParam())));
  const auto executor = Must(graph::Executor::Compile(model.graph, {}));
  Tensor inputs(model.inputs.shape, model.inputs.dtype), labels(model.labels.shape, DType::kI32);
  FillBatch(inputs, labels);
  std::vector<float> weights(model.parameter_floats), gradients(weights.size());
  nn::InitialiseParameters(model, kSeed, weights);
  Must(executor->Bind(nn::kInputs, inputs));
  Must(executor->Bind(nn::kLabels, labels));
  Must(nn::BindParameters(model, weights, *executor));
  Must(nn::BindGradients(model, gradients, *executor));
  Adam adam(weights.size());
  std::vector<uint64_t> positions(kBatch);
  std::iota(positions.begin(), positions.end(), uint64_t{0});
  const auto count = static_cast<double>(labels.elements());
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    Must(executor->Run({.seed = kSeed, .sample_positions = positions}));
    losses.push_back(Must(executor->Output(nn::kLossSum)).data<float>()[0] / count);
    adam.Update(weights, gradients);
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front()) << ::testing::PrintToString(losses);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ZooLearningTest,
    ::testing::Values(Recipe{{.name = "lenet", .width = 0.5}, 28},
                      Recipe{{.name = "alexnet", .dropout = 0, .width = 0.125}, 64},
                      Recipe{{.name = "vgg16", .dropout = 0, .width = 0.125}, 32},
                      Recipe{{.name = "resnet18", .width = 0.125}, 32},
                      Recipe{{.name = "resnet50", .width = 0.125}, 32},
                      Recipe{{.name = "densenet121", .width = 0.25}, 32},
                      Recipe{{.name = "gpt2", .width = 0.1, .layers = 2}, 0}),
    [](const auto& info) { return info.param.network.name; });

}  // namespace
}  // namespace ringmaster

// What the graph's passes make of the networks that have names: the same bits, step by step, but
// where one adds in another order.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/networks.h"
#include "common/status.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/requirements.h"
#include "runtime/nn/binding.h"
#include "runtime/nn/initialise.h"
#include "runtime/nn/zoo.h"
#include "runtime/tensor/random.h"

namespace ringmaster::nn {
namespace {

using tensor::Tensor;

constexpr int64_t kBatch = 4;
constexpr int64_t kClasses = 10;
constexpr int64_t kWindow = 8;
constexpr uint64_t kSeed = 5;

Model SmallModel(const networks::Network& network, int64_t least_side = 32) {
  BuildOptions options{.batch = kBatch, .classes = kClasses};
  if (network.reads_text()) {
    options.sample = {{kWindow}, tensor::DType::kI32};
    options.label_shape = {kWindow};
  } else {
    const int64_t side = std::max<int64_t>(network.smallest_side, least_side);
    options.sample = {{3, side, side}, tensor::DType::kF32};
  }
  ZooSettings settings{.name = std::string(network.name), .width = 0.125};
  if (network.reads_text()) settings.layers = 2;
  auto model = BuildZoo(settings, options);
  EXPECT_TRUE(model.ok()) << Message(model.status());
  return model.ok() ? *std::move(model) : Model();
}

// A model in training on samples that are made up, with plain gradient descent.
class Training {
 public:
  Training(const Model& model, const graph::CompileOptions& options)
      : model_(model),
        weights_(model.parameter_floats),
        inputs_(model.inputs.shape, model.inputs.dtype),
        labels_(model.labels.shape, model.labels.dtype),
        positions_(kBatch) {
    InitialiseParameters(model, kSeed, weights_);
    FillSamples();
    auto executor = graph::Executor::Compile(model.graph, options);
    EXPECT_TRUE(executor.ok()) << Message(executor.status());
    executor_ = std::move(*executor);
    EXPECT_TRUE(executor_->Bind(kInputs, inputs_).ok());
    EXPECT_TRUE(executor_->Bind(kLabels, labels_).ok());
    for (const Parameter& p : model.parameters) {
      const Tensor view = Tensor::View(weights_.data() + p.offset, p.shape, tensor::DType::kF32);
      EXPECT_TRUE(executor_->Bind(p.name, view).ok());
    }
    std::iota(positions_.begin(), positions_.end(), uint64_t{0});
  }

  void Step() {
    const absl::Status status = executor_->Run({.seed = kSeed, .sample_positions = positions_});
    ASSERT_TRUE(status.ok()) << Message(status);
    for (const Parameter& p : model_.parameters) {
      const Tensor gradient = *executor_->Output(p.gradient);
      for (int64_t i = 0; i < gradient.elements(); ++i)
        weights_[p.offset + static_cast<size_t>(i)] -= 1e-3F * gradient.data<float>()[i];
    }
  }

  graph::Executor& executor() { return *executor_; }

 private:
  void FillSamples() {
    tensor::RandomStream stream({.seed = kSeed, .op = tensor::StreamOf("samples")});
    const auto draw = [&](Tensor& tensor) {
      for (int32_t& v : tensor.span<int32_t>()) v = static_cast<int32_t>(stream.Below(kClasses));
    };
    draw(labels_);
    if (inputs_.dtype() == tensor::DType::kI32) return draw(inputs_);
    for (float& v : inputs_.span<float>()) v = 2 * tensor::ToUniform(stream.Next()) - 1;
  }

  const Model& model_;
  std::vector<float> weights_;
  Tensor inputs_, labels_;
  std::vector<uint64_t> positions_;
  std::unique_ptr<graph::Executor> executor_;
};

// No further apart than that part of the largest, which counts as one at least.
void ExpectNear(const Tensor& x, const Tensor& y, float tolerance, const std::string& name) {
  float largest = 1;
  for (const float v : x.span<float>()) largest = std::max(largest, std::abs(v));
  for (int64_t i = 0; i < x.elements(); ++i)
    ASSERT_NEAR(x.data<float>()[i], y.data<float>()[i], tolerance * largest) << name;
}

void ExpectSameOutputs(const Model& model, Training& a, Training& b, float tolerance = 0) {
  for (const graph::NamedValue& output : model.graph.outputs()) {
    const Tensor x = *a.executor().Output(output.name), y = *b.executor().Output(output.name);
    if (tolerance != 0 && x.dtype() == tensor::DType::kF32) {
      ExpectNear(x, y, tolerance, output.name);
    } else {
      ASSERT_EQ(std::memcmp(x.raw(), y.raw(), x.bytes()), 0) << output.name;
    }
  }
}

void ExpectSameSteps(int steps, const Model& model, Training& one, Training& other,
                     float tolerance = 0) {
  for (int step = 0; step < steps; ++step) {
    one.Step();
    other.Step();
    ExpectSameOutputs(model, one, other, tolerance);
  }
}

class ZooPassesTest : public ::testing::TestWithParam<networks::Network> {};

// Their max poolings are of convolutions with a bias: DelayPoolGrads and FuseMaxPool add up their
// gradients by it and by the first weights in another order. Later steps have other weights, and
// other pixels that are the largest.
bool PoolsWithoutNorm(const networks::Network& network) {
  constexpr std::array<std::string_view, 3> kThose{"alexnet", "lenet", "vgg-16"};
  return std::ranges::find(kThose, network.name) != kThose.end();
}

TEST_P(ZooPassesTest, ChangeNoBitOfTenStepsUnlessOneAddsInAnotherOrder) {
  const Model model = SmallModel(GetParam());
  Training with(model, {}), without(model, {.optimise = false});
  EXPECT_LE(with.executor().ImplementationNames().size(),
            without.executor().ImplementationNames().size());
  if (PoolsWithoutNorm(GetParam())) {
    ExpectSameSteps(/*steps=*/1, model, with, without, /*tolerance=*/1e-6F);
  } else {
    ExpectSameSteps(/*steps=*/10, model, with, without);
  }
}

TEST_P(ZooPassesTest, SharedMemoryLeavesEveryBitOfThreeStepsAsItIs) {
  const Model model = SmallModel(GetParam());
  Training shared(model, {}), apart(model, {.reuse_memory = false});
  EXPECT_LT(shared.executor().arena_bytes(), apart.executor().arena_bytes());
  ExpectSameSteps(/*steps=*/3, model, shared, apart);
}

TEST_P(ZooPassesTest, ValuesInTheGradientsMemoryLeaveEveryBitOfThreeStepsAsItIs) {
  const Model model = SmallModel(GetParam());
  Training beside(model, {}), within(model, {.block = GradientBlock(model)});
  EXPECT_LE(within.executor().arena_bytes(), beside.executor().arena_bytes());
  ExpectSameSteps(/*steps=*/3, model, within, beside);
}

TEST_P(ZooPassesTest, WhatIsComputedAgainUnaskedLeavesEveryBitOfThreeStepsAsItIs) {
  const Model model = SmallModel(GetParam());
  Training again(model, {.recompute_from = 0}), kept(model, {});
  EXPECT_LE(again.executor().arena_bytes(), kept.executor().arena_bytes());
  ExpectSameSteps(/*steps=*/3, model, again, kept);
}

std::string TestNameOf(std::string_view network) {
  std::string name(network);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPassesTest, ::testing::ValuesIn(networks::kNetworks),
                         [](const auto& info) { return TestNameOf(info.param.name); });

// Of networks that hold more than the results of convolutions and products, with images so large
// that what they hold outweighs what a single convolution works in on any processor.
class ZooMemoryTest : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ZooMemoryTest, WithATenthLessEveryBitOfThreeStepsIsTheSame) {
  const Model model = SmallModel(*networks::Find(GetParam()), 96);
  for (const tensor::Layout images :
       {tensor::Layout::kRowMajor, tensor::Layout::kBlocks8, tensor::Layout::kBlocks16}) {
    SCOPED_TRACE(static_cast<int>(images));
    Training much(model, {.images = images});
    const size_t budget = much.executor().arena_bytes() * 9 / 10;
    Training little(model, {.images = images, .memory_budget = budget});
    EXPECT_LE(little.executor().arena_bytes(), budget);
    for (int step = 0; step < 3; ++step) {
      much.Step();
      little.Step();
      ExpectSameOutputs(model, much, little);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooMemoryTest,
                         ::testing::Values("resnet-18", "resnet-50", "densenet-121", "gpt-2"),
                         [](const auto& info) { return TestNameOf(info.param); });

// As published, with the images that they are known for. Nothing is computed.
Model PublishedModel(std::string_view name) {
  auto model =
      BuildZoo({.name = std::string(name)},
               {.batch = 8, .sample = {{3, 224, 224}, tensor::DType::kF32}, .classes = 1000});
  EXPECT_TRUE(model.ok()) << Message(model.status());
  return model.ok() ? *std::move(model) : Model();
}

size_t ArenaOf(const Model& model, const graph::CompileOptions& options = {}) {
  const auto requirements = graph::RequirementsOf(model.graph, options);
  EXPECT_TRUE(requirements.ok()) << Message(requirements.status());
  return requirements.ok() ? requirements->arena_bytes : 0;
}

// A head's scores would be the window's square, which outgrows all the rest.
TEST(AttentionMemoryTest, GrowsWithTheWindowAndNotWithItsSquare) {
  const auto arena_of = [](int64_t window) {
    const auto model =
        BuildZoo({.name = "gpt-2", .layers = 1}, {.batch = 1,
                                                  .sample = {{window}, tensor::DType::kI32},
                                                  .label_shape = {window},
                                                  .classes = kClasses});
    EXPECT_TRUE(model.ok()) << Message(model.status());
    return static_cast<double>(ArenaOf(*model));
  };
  const double half = arena_of(512);
  const double whole = arena_of(1024);
  EXPECT_LT(whole, 2.1 * half);
}

struct Share {
  std::string_view network;
  double most = 0;
};

std::ostream& operator<<(std::ostream& out, const Share& share) {
  return out << share.network;
}

// What a step of a published network takes, of what it would without values that take the place of
// others: 0.15 to 0.27 of it when this was written.
class ZooPlanTest : public ::testing::TestWithParam<Share> {};

TEST_P(ZooPlanTest, ValuesThatAreOverMakeRoomForTheNext) {
  const Model model = PublishedModel(GetParam().network);
  for (const tensor::Layout images :
       {tensor::Layout::kRowMajor, tensor::Layout::kBlocks8, tensor::Layout::kBlocks16}) {
    const auto shared = static_cast<double>(ArenaOf(model, {.images = images}));
    const auto apart =
        static_cast<double>(ArenaOf(model, {.images = images, .reuse_memory = false}));
    EXPECT_LT(shared, GetParam().most * apart) << static_cast<int>(images);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooPlanTest,
                         ::testing::Values(Share{"alexnet", 0.25}, Share{"vgg-16", 0.2},
                                           Share{"resnet-50", 0.32}, Share{"densenet-121", 0.33}),
                         [](const auto& info) { return TestNameOf(info.param.network); });

struct Reorders {
  std::string_view network;
  int count = 0;
  int more_in_eights = 0;  // in blocks of eight channels
};

std::ostream& operator<<(std::ostream& out, const Reorders& reorders) {
  return out << reorders.network << ": " << reorders.count;
}

// How often a step brings images from one layout into another: VGG-16's and AlexNet's at the
// classifier, forward and backward; with vectors of eight also behind AlexNet's first convolution,
// which goes by rows then.
class ZooLayoutTest : public ::testing::TestWithParam<Reorders> {};

TEST_P(ZooLayoutTest, AStepInBlocksReordersImagesOnlySoOften) {
  const tensor::Layout images = kernels::FastestImageLayout();
  if (images == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  const Model model = PublishedModel(GetParam().network);
  const graph::Graph made = graph::Optimise(model.graph, {.images = images});
  ASSERT_TRUE(made.status().ok()) << Message(made.status());
  std::vector<std::string> reorders;
  for (const graph::Node& node : made.nodes()) {
    if (node.op->type == "reorder") reorders.push_back(node.name);
  }
  const int more = images == tensor::Layout::kBlocks8 ? GetParam().more_in_eights : 0;
  EXPECT_EQ(std::ssize(reorders), GetParam().count + more) << ::testing::PrintToString(reorders);
  const auto step = graph::RequirementsOf(model.graph, {.images = images});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->reordered_bytes, 0U) << "within other steps";
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooLayoutTest,
                         ::testing::Values(Reorders{"resnet-50", 0}, Reorders{"vgg-16", 2},
                                           Reorders{"densenet-121", 0}, Reorders{"resnet-18", 0},
                                           Reorders{"alexnet", 2, 2}),
                         [](const auto& info) { return TestNameOf(info.param.network); });

}  // namespace
}  // namespace ringmaster::nn

#include "runtime/graph/passes/recompute.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/dump.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/requirements.h"
#include "runtime/tensor/random.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

constexpr int64_t kRows = 64;

using ActivationFunction = ValueId (*)(Graph& g, ValueId x, std::string_view name);

// Linear layers with an activation and a dropout between them, and their gradients.
void BuildLayers(Graph& g, int layers, ActivationFunction activation = Gelu) {
  ValueId x = g.Input("x", {kRows, 32}, DType::kF32);
  for (int i = 0; i < layers; ++i) {
    const ValueId weight = g.Parameter(fmt::format("w{}", i), {32, 32}, DType::kF32);
    x = Linear(g, x, weight, ValueId{}, fmt::format("fc{}", i));
    x = Reshape(g, activation(g, x, fmt::format("act{}", i)), {kRows, 4, 8});
    x = Reshape(g, Dropout(g, x, 0.5, fmt::format("drop{}", i)), {kRows, 32});
  }
  const std::vector<ValueId> parameters = g.OfKind(ValueKind::kParameter);
  const auto gradients = Differentiate(g, SumAll(g, Multiply(g, x, x)), parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  for (size_t i = 0; i < parameters.size(); ++i)
    g.MarkOutput("grad." + g.value(parameters[i]).name, (*gradients)[i]);
}

size_t ArenaOf(const Graph& g, const CompileOptions& options) {
  const auto requirements = RequirementsOf(g, options);
  EXPECT_TRUE(requirements.ok()) << requirements.status();
  return requirements.ok() ? requirements->arena_bytes : 0;
}

// All outputs of a run on numbers that are made up.
std::vector<std::vector<float>> OutputsOf(const Graph& g, const CompileOptions& options) {
  auto executor = Executor::Compile(g, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  std::vector<Tensor> sources;
  for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter}) {
    for (const ValueId id : g.OfKind(kind)) {
      tensor::RandomStream stream({.seed = 3, .op = tensor::StreamOf(g.value(id).name)});
      Tensor& source = sources.emplace_back(g.shape(id), DType::kF32);
      for (float& v : source.span<float>()) v = tensor::ToUniform(stream.Next()) - 0.5F;
      EXPECT_TRUE((*executor)->Bind(g.value(id).name, source).ok());
    }
  }
  std::vector<uint64_t> positions(kRows);
  std::iota(positions.begin(), positions.end(), uint64_t{7});
  EXPECT_TRUE((*executor)->Run({.seed = 11, .sample_positions = positions}).ok());
  std::vector<std::vector<float>> all;
  for (const NamedValue& output : g.outputs()) {
    const Tensor result = *(*executor)->Output(output.name);
    all.emplace_back(result.data<float>(), result.data<float>() + result.elements());
  }
  return all;
}

std::vector<std::string> NamesOf(const Graph& g, const CompileOptions& options) {
  const auto requirements = RequirementsOf(g, options);
  EXPECT_TRUE(requirements.ok()) << requirements.status();
  return requirements.ok() ? requirements->implementation_names : std::vector<std::string>();
}

TEST(RecomputeTest, ABudgetIsKeptAndNoBitChanges) {
  Graph g;
  BuildLayers(g, 8);
  const size_t whole = ArenaOf(g, {});
  const CompileOptions small{.memory_budget = whole * 3 / 4};
  EXPECT_LE(ArenaOf(g, small), small.memory_budget);
  EXPECT_THAT(NamesOf(g, small), ::testing::Contains(::testing::StartsWith("again/drop")));
  EXPECT_EQ(OutputsOf(g, small), OutputsOf(g, {}));
}

TEST(RecomputeTest, ABudgetIsThatOfTheArenaBesideTheOutputsBlock) {
  Graph g;
  BuildLayers(g, 8);
  CompileOptions beside{.block = {.bytes = g.outputs().size() * sizeof(float) * 32 * 32}};
  for (const NamedValue& output : g.outputs())
    beside.block.offsets.emplace(output.name,
                                 beside.block.offsets.size() * sizeof(float) * 32 * 32);
  const size_t whole = ArenaOf(g, beside);
  EXPECT_LT(whole, ArenaOf(g, {}));
  CompileOptions small = beside;
  small.memory_budget = whole * 3 / 4;
  EXPECT_LE(ArenaOf(g, small), small.memory_budget);
  EXPECT_EQ(OutputsOf(g, small), OutputsOf(g, {}));
  EXPECT_EQ(OutputsOf(g, beside), OutputsOf(g, {}));
}

int64_t CountOfAgain(const std::vector<std::string>& names) {
  return std::ranges::count_if(names,
                               [](const std::string& name) { return name.starts_with("again/"); });
}

TEST(RecomputeTest, UnaskedLittleIsComputedAgainAndOnlyWhereMuchIsHeld) {
  constexpr int kLayers = 40;
  Graph g;
  BuildLayers(g, kLayers);
  const CompileOptions unasked{.recompute_from = ArenaOf(g, {}) - 1};
  EXPECT_EQ(CountOfAgain(NamesOf(g, {})), 0);
  EXPECT_EQ(CountOfAgain(NamesOf(g, {.recompute_from = ArenaOf(g, {})})), 0);
  // GELU and dropout touch a quarter of what their layer touches on both ways, and count half of
  // that; a fiftieth may be touched again, so a sixth of the layers' are.
  const int64_t again = CountOfAgain(NamesOf(g, unasked));
  EXPECT_GT(again, kLayers / 10);
  EXPECT_LE(again, kLayers / 2);
  EXPECT_LT(ArenaOf(g, unasked), ArenaOf(g, {}));
  EXPECT_EQ(OutputsOf(g, unasked), OutputsOf(g, {}));
}

// A chain of linear layers with a batch norm and a ReLU behind each, and its gradients.
void BuildNormalisedLayers(Graph& g, decltype(BatchNorm)& norm) {
  ValueId x = g.Input("x", {64, 32}, DType::kF32);
  std::vector<ValueId> weights;
  for (int i = 0; i < 8; ++i) {
    weights.push_back(g.Parameter(fmt::format("w{}", i), {32, 32}, DType::kF32));
    const ValueId gamma = g.Parameter(fmt::format("gamma{}", i), {32}, DType::kF32),
                  beta = g.Parameter(fmt::format("beta{}", i), {32}, DType::kF32);
    x = Linear(g, x, weights.back(), ValueId{});
    x = Relu(g, norm(g, x, gamma, beta, 1e-5, fmt::format("bn{}", i)).y);
  }
  const auto gradients = Differentiate(g, SumAll(g, x), weights);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  for (size_t i = 0; i < weights.size(); ++i)
    g.MarkOutput(fmt::format("grad{}", i), (*gradients)[i]);
}

TEST(RecomputeTest, ABatchNormIsComputedAgainFromTheStatisticsThatItHas) {
  Graph g;
  BuildNormalisedLayers(g, BatchNorm);
  const CompileOptions small{.memory_budget = ArenaOf(g, {}) * 3 / 4};
  const auto dump = DumpPlan(g, small);
  ASSERT_TRUE(dump.ok()) << dump.status();
  EXPECT_THAT(dump->text, ::testing::ContainsRegex("again/[^ ]*: batch_norm_again by"));
  EXPECT_THAT(dump->text, ::testing::Not(::testing::ContainsRegex("again/[^ ]*: batch_norm by")));
  EXPECT_EQ(OutputsOf(g, small), OutputsOf(g, {}));
}

TEST(RecomputeTest, ASynchronisedBatchNormIsComputedAgainWithoutAnotherSumOverShards) {
  Graph g;
  BuildNormalisedLayers(g, SynchronisedBatchNorm);
  const CompileOptions small{.memory_budget = ArenaOf(g, {}) * 3 / 4};
  const auto dump = DumpPlan(g, small);
  ASSERT_TRUE(dump.ok()) << dump.status();
  EXPECT_THAT(dump->text, ::testing::ContainsRegex("again/[^ ]*: batch_norm_synchronised by"));
  EXPECT_THAT(dump->text, ::testing::Not(::testing::ContainsRegex(
                              "again/[^ ]*: (batch_moments|batch_statistics|sum_over_shards) by")));
  EXPECT_EQ(OutputsOf(g, small), OutputsOf(g, {}));
}

TEST(RecomputeTest, WithRoomEnoughNothingIsComputedTwice) {
  Graph g;
  BuildLayers(g, 4);
  EXPECT_EQ(NamesOf(g, {.memory_budget = ArenaOf(g, {})}), NamesOf(g, {}));
}

TEST(RecomputeTest, IsTheLastOfThePassesInADumpWhereMemoryIsToBeSavedAlone) {
  Graph g;
  BuildLayers(g, 8);
  std::vector<PassDump> small, whole, none;
  EXPECT_TRUE(DumpPlan(g, {.memory_budget = ArenaOf(g, {}) * 3 / 4}, &small).ok());
  EXPECT_TRUE(DumpPlan(g, {}, &whole).ok());
  ASSERT_EQ(small.size(), whole.size() + 1);
  EXPECT_EQ(small.back().pass, "Recompute");
  EXPECT_THAT(small.back().made.text, ::testing::HasSubstr("again/drop"));
  EXPECT_THAT(whole.back().made.text, ::testing::Not(::testing::HasSubstr("again/")));
  // What no budget allows is shown, too.
  EXPECT_FALSE(DumpPlan(g, {.memory_budget = 1}, &none).ok());
  EXPECT_EQ(none.back().pass, "Recompute");
}

TEST(RecomputeTest, ProductsAreNeverComputedTwice) {
  for (const auto& [op, activation] : {std::pair<std::string, ActivationFunction>{"gelu", Gelu},
                                       {"exact_gelu", ExactGelu},
                                       {"silu", Silu}}) {
    Graph g;
    BuildLayers(g, 8, activation);
    const CompileOptions saving{.memory_budget = ArenaOf(g, {}) * 3 / 4};
    const auto dump = DumpPlan(g, saving);
    ASSERT_TRUE(dump.ok()) << dump.status();
    EXPECT_THAT(dump->text, ::testing::ContainsRegex("again/fc[0-9]." + op + ": " + op + " by"));
    EXPECT_THAT(dump->text,
                ::testing::Not(::testing::ContainsRegex("again/[^ ]*: (linear|matmul)")));
    EXPECT_EQ(OutputsOf(g, saving), OutputsOf(g, {})) << op;
  }
}

// Three convolutions with a ReLU behind each, of which the first sees three channels and the others
// make so many, and their gradients.
void BuildConvolutions(Graph& g, int64_t channels) {
  constexpr Conv2dOptions kSame{{1, 1}, {1, 1}};
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return g.Parameter(name, shape, DType::kF32);
  };
  ValueId x = g.Input("x", {2, 3, 16, 16}, DType::kF32);
  x = Relu(g, Conv2d(g, x, weight("w1", {32, 3, 3, 3}), ValueId{}, kSame, "conv1"));
  x = Relu(g, Conv2d(g, x, weight("w2", {channels, 32, 3, 3}), ValueId{}, kSame, "conv2"));
  x = Relu(g, Conv2d(g, x, weight("w3", {channels, channels, 3, 3}), ValueId{}, kSame, "conv3"));
  const std::vector<ValueId> parameters = g.OfKind(ValueKind::kParameter);
  const auto gradients = Differentiate(g, SumAll(g, Multiply(g, x, x)), parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  for (size_t i = 0; i < parameters.size(); ++i)
    g.MarkOutput("grad." + g.value(parameters[i]).name, (*gradients)[i]);
}

TEST(RecomputeTest, OfConvolutionsOnlyThoseThatSeeFewChannelsAreComputedAgain) {
  Graph g;
  BuildConvolutions(g, 128);
  // These take all images in rows, without reorders.
  const CompileOptions plain{.kernels = kernels::Selection::kReference};
  CompileOptions unasked = plain, asked = plain;
  unasked.recompute_from = ArenaOf(g, plain) - 1;
  asked.memory_budget = ArenaOf(g, plain) - 1;
  for (const CompileOptions& less : {unasked, asked}) {
    const auto dump = DumpPlan(g, less);
    ASSERT_TRUE(dump.ok()) << dump.status();
    EXPECT_THAT(dump->text, ::testing::ContainsRegex("again/conv1: conv2d by"));
    EXPECT_THAT(dump->text, ::testing::Not(::testing::ContainsRegex("again/conv[23]")));
    EXPECT_LT(ArenaOf(g, less), ArenaOf(g, plain));
    EXPECT_EQ(OutputsOf(g, less), OutputsOf(g, plain));
  }
}

TEST(RecomputeTest, AConvolutionThatTakesMoreThanLittleOfTheWorkIsNotComputedAgain) {
  Graph g;
  BuildConvolutions(g, 32);
  CompileOptions unasked{.kernels = kernels::Selection::kReference};
  unasked.recompute_from = ArenaOf(g, unasked) - 1;
  EXPECT_EQ(CountOfAgain(NamesOf(g, unasked)), 0);
}

// Results in place, of which the choice of what to compute again knows nothing.
TEST(RecomputeTest, ABudgetThatThePlanKeepsIsKeptWithoutComputingMuchAgain) {
  Graph g;
  BuildLayers(g, 8);
  const size_t whole = ArenaOf(g, {});
  EXPECT_EQ(CountOfAgain(NamesOf(g, {.memory_budget = whole, .recompute_from = 2 * whole})), 0);
  const int64_t unasked = CountOfAgain(NamesOf(g, {.recompute_from = whole - 1}));
  EXPECT_EQ(CountOfAgain(NamesOf(g, {.memory_budget = whole, .recompute_from = whole - 1})),
            unasked);
}

TEST(RecomputeTest, ABudgetThatCannotBeKeptIsRefusedWithNumbers) {
  Graph g;
  BuildLayers(g, 4);
  const auto refused = RequirementsOf(g, {.memory_budget = 10'000});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::AllOf(::testing::HasSubstr("the budget is 10,000"),
                               ::testing::HasSubstr("where what is cheap is computed again")));
}

TEST(RecomputeTest, WhatItsInputsWouldBeHeldForIsNotDropped) {
  Graph g;
  const ValueId x = g.Parameter("x", {32, 32}, DType::kF32);
  ValueId y = x;
  // Each tanh's gradient reads its result, but nobody reads what it was made from.
  for (int i = 0; i < 4; ++i) y = Tanh(g, MatMul(g, y, x));
  const auto gradients = Differentiate(g, SumAll(g, y), std::vector{x});
  ASSERT_TRUE(gradients.ok());
  g.MarkOutput("grad", gradients->front());
  const auto refused = RequirementsOf(g, {.memory_budget = ArenaOf(g, {}) - 1});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ringmaster::graph

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

// batch_norm_inference of x with parameters and statistics of its own.
ValueId NormOfKnown(Graph& g, ValueId x) {
  const Shape channels = {g.shape(x).dim(1)};
  const auto parameter = [&](const char* name) { return g.Parameter(name, channels, DType::kF32); };
  return BatchNormInference(g, x, parameter("gamma"), parameter("beta"), parameter("mean"),
                            parameter("variance"), 1e-5, "norm");
}

// A convolution for which there is a kernel of ours in blocks, and what is made of it, as
// FuseConvNorm sees it.
Graph Evaluation(const std::function<ValueId(Graph& g, ValueId image)>& behind,
                 bool has_bias = false) {
  Graph g;
  const ValueId x = g.Input("x", {2, 32, 32, 32}, DType::kF32);
  const ValueId weight = g.Parameter("w", {32, 32, 3, 3}, DType::kF32);
  const ValueId bias = has_bias ? g.Parameter("b", {32}, DType::kF32) : ValueId{};
  g.MarkOutput("y", SumAll(g, behind(g, Conv2d(g, x, weight, bias, kSame, "conv"))));
  return ChooseLayouts(FuseRelu(g), kernels::FastestImageLayout(), kernels::Selection::kFastest);
}

class FuseConvNormTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::FastestImageLayout() == Layout::kRowMajor) GTEST_SKIP() << "no vectors";
  }

  static Graph Fused(const Graph& graph) {
    return FuseConvNorm(graph, kernels::Selection::kFastest);
  }

  static void ExpectKept(const Graph& graph) {
    ASSERT_TRUE(graph.status().ok()) << graph.status();
    ASSERT_EQ(OpsOf(graph).at("batch_norm_inference"), 1);
    EXPECT_EQ(ToString(Fused(graph)), ToString(graph));
  }
};

TEST_F(FuseConvNormTest, AConvolutionMakesTheNormOfItsResult) {
  const Graph before = Evaluation(NormOfKnown), after = Fused(before);
  ASSERT_TRUE(after.status().ok()) << after.status();
  EXPECT_EQ(OpsOf(before).at("conv2d"), 1);
  EXPECT_EQ(OpsOf(before).at("batch_norm_inference"), 1);
  EXPECT_EQ(OpsOf(after).count("conv2d") + OpsOf(after).count("batch_norm_inference"), 0u);
  EXPECT_EQ(after.nodes().size(), before.nodes().size() - 1);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "conv2d_batch_norm") continue;
    EXPECT_EQ(node.name, "conv");
    EXPECT_EQ(node.attributes.Real("epsilon"), 1e-5);
    EXPECT_EQ(node.attributes.Int("relu"), 0);
    EXPECT_EQ(after.spec(node.outputs[0]).layout, kernels::FastestImageLayout());
    std::string names;
    for (const ValueId input : node.inputs) names += after.value(input).name + " ";
    EXPECT_EQ(names, "reorder/x:0 w gamma beta mean variance ");
    return;
  }
  ADD_FAILURE() << "no conv2d_batch_norm";
}

TEST_F(FuseConvNormTest, TheAddendAndTheReluBehindAreMadeWithIt) {
  const Graph after = Fused(Evaluation([](Graph& g, ValueId image) {
    const ValueId around = g.Input("around", g.shape(image), DType::kF32);
    return Relu(g, Add(g, around, NormOfKnown(g, image)));
  }));
  for (const Node& node : after.nodes()) {
    if (node.op->type != "conv2d_batch_norm") continue;
    EXPECT_EQ(node.attributes.Int("relu"), 1);
    ASSERT_EQ(node.inputs.size(), 7u);
    EXPECT_EQ(after.value(node.inputs[6]).name, "reorder/around:0");
    EXPECT_EQ(OpsOf(after).count("add") + OpsOf(after).count("relu"), 0u);
    return;
  }
  ADD_FAILURE() << "no conv2d_batch_norm";
}

TEST_F(FuseConvNormTest, AResultThatOthersReadIsKept) {
  ExpectKept(Evaluation(
      [](Graph& g, ValueId image) { return Multiply(g, NormOfKnown(g, image), image); }));
  ExpectKept(Evaluation([](Graph& g, ValueId image) {
    g.MarkOutput("image", image);
    return NormOfKnown(g, image);
  }));
}

TEST_F(FuseConvNormTest, WhatComesFirstOtherwiseIsKept) {
  ExpectKept(Evaluation([](Graph& g, ValueId image) { return NormOfKnown(g, Relu(g, image)); }));
  ExpectKept(Evaluation(NormOfKnown, /*has_bias=*/true));
  ExpectKept(Evaluation([](Graph& g, ValueId image) {
    return NormOfKnown(g, MaxPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}));
  }));
}

TEST_F(FuseConvNormTest, WhatNoKernelOfOursTakesIsKept) {
  ExpectKept(Evaluation([](Graph& g, ValueId image) {
    const ValueId weight = g.Parameter("w2", {32, 32, 3, 3}, DType::kF32);
    return NormOfKnown(g, Conv2d(g, image, weight, ValueId{}, {{2, 2}, {1, 1}}, "strided"));
  }));
  const Graph graph = Evaluation(NormOfKnown);
  for (const auto selection : {kernels::Selection::kOneDnn, kernels::Selection::kReference})
    EXPECT_EQ(ToString(FuseConvNorm(graph, selection)), ToString(graph));
}

}  // namespace
}  // namespace ringmaster::graph

#include <functional>

#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

ValueId Halve(Graph& g, ValueId image) {
  return MaxPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}, "pool");
}

// A first convolution, what is behind, and something whose gradient reads that; as FuseMaxPool sees
// it.
Graph Pooled(const std::function<ValueId(Graph& g, ValueId image)>& behind,
             DType dtype = DType::kF32) {
  Graph g;
  const ValueId x = g.Input("x", {2, 1, 12, 12}, dtype);
  const ValueId weight = g.Parameter("w", {4, 1, 5, 5}, dtype);
  const ValueId bias = g.Parameter("b", {4}, dtype);
  AddGradients(g, Tanh(g, behind(g, Conv2d(g, x, weight, bias, {}, "conv"))));
  return ChooseLayouts(FuseRelu(DelayPoolGrads(Swept(g))), kernels::FastestImageLayout(),
                       kernels::Selection::kFastest);
}

Graph Fused(const Graph& graph) {
  return FuseMaxPool(graph, kernels::Selection::kFastest);
}

class FuseMaxPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::FastestImageLayout() == Layout::kRowMajor) GTEST_SKIP() << "no vectors";
  }

  static void ExpectKept(const Graph& graph) {
    ASSERT_TRUE(graph.status().ok()) << graph.status();
    EXPECT_EQ(OpsOf(graph).count("conv2d_max_pool2d"), 0u);
    EXPECT_EQ(ToString(Fused(graph)), ToString(graph));
  }
};

TEST_F(FuseMaxPoolTest, AConvolutionIsPooledAtOnceAndItsGradientLooksAtWhatWasLargest) {
  const Graph before = Pooled(Halve), after = Fused(before);
  ASSERT_TRUE(after.status().ok()) << after.status();
  for (const char* op : {"conv2d", "max_pool2d", "max_pool2d_grad", "conv2d_grad_weight"}) {
    EXPECT_EQ(OpsOf(before).at(op), 1) << op;
    EXPECT_EQ(OpsOf(after).count(op), 0u) << op;
  }
  EXPECT_EQ(OpsOf(after).at("conv2d_max_pool2d"), 1);
  EXPECT_EQ(after.nodes().size(), before.nodes().size() - 2);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "conv2d_max_pool2d_grad_weight") continue;
    const Node& convolution = after.node(after.value(node.inputs[2]).producer);
    EXPECT_EQ(convolution.name, "conv");
    EXPECT_EQ(node.inputs[0], convolution.inputs[0]);
    EXPECT_EQ(node.inputs[2], convolution.outputs[1]);
    EXPECT_EQ(after.spec(node.outputs[0]), (ValueSpec{{4, 1, 5, 5}, DType::kF32}));
    return;
  }
  ADD_FAILURE() << "no conv2d_max_pool2d_grad_weight";
}

TEST_F(FuseMaxPoolTest, AReluBetweenIsMadeWithIt) {
  const Graph after =
      Fused(Pooled([](Graph& g, ValueId image) { return Halve(g, Relu(g, image)); }));
  ASSERT_EQ(OpsOf(after).count("conv2d_max_pool2d"), 1u);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "conv2d_max_pool2d") continue;
    EXPECT_EQ(node.attributes.Int("relu"), 1);
  }
  EXPECT_EQ(OpsOf(after).at("relu_grad"), 1) << "of the pooled pixels";
}

TEST_F(FuseMaxPoolTest, AnImageThatOthersReadIsKept) {
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    return Add(g, Halve(g, image), AvgPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}));
  }));
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    g.MarkOutput("image", image);
    return Halve(g, image);
  }));
}

TEST_F(FuseMaxPoolTest, AConvolutionWhoseInputHasAGradientIsKept) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 1, 12, 12}, DType::kF32);
  const ValueId weight = g.Parameter("w", {4, 1, 5, 5}, DType::kF32);
  AddGradients(g, Tanh(g, Halve(g, Conv2d(g, x, weight, ValueId{}, {}, "conv"))));
  ExpectKept(Swept(g));
}

TEST_F(FuseMaxPoolTest, WhatNoKernelOfOursTakesIsKept) {
  ExpectKept(Pooled(Halve, DType::kF64));
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    return MaxPool2d(g, image, {3, 3}, {{2, 2}, {0, 0}}, "pool");
  }));
  const Graph graph = Pooled(Halve);
  for (const auto selection : {kernels::Selection::kOneDnn, kernels::Selection::kReference})
    EXPECT_EQ(ToString(FuseMaxPool(graph, selection)), ToString(graph));
}

}  // namespace
}  // namespace ringmaster::graph

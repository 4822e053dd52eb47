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

BatchNormResult NormOf(Graph& g, ValueId x) {
  const int64_t channels = g.shape(x).dim(1);
  const ValueId gamma = g.Parameter("gamma", {channels}, g.spec(x).dtype),
                beta = g.Parameter("beta", {channels}, g.spec(x).dtype);
  return BatchNorm(g, x, gamma, beta, 1e-5, "norm");
}

// A batch norm, what is behind, and something whose gradient reads that; as FuseNormMaxPool sees
// it.
Graph Seen(Graph& g, ValueId pooled) {
  AddGradients(g, Tanh(g, pooled));
  return ChooseLayouts(FuseRelu(DelayPoolGrads(Swept(g))), kernels::FastestImageLayout(),
                       kernels::Selection::kFastest);
}
Graph Pooled(const std::function<ValueId(Graph& g, ValueId image)>& behind,
             DType dtype = DType::kF32) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 4, 12, 12}, dtype);
  return Seen(g, behind(g, NormOf(g, x).y));
}

// The same of an image in blocks.
Graph PooledInBlocks() {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 64, 64}, DType::kF32);
  const ValueId weight = g.Parameter("w", {64, 3, 7, 7}, DType::kF32);
  const ValueId image = Conv2d(g, x, weight, ValueId{}, {.stride = {2, 2}, .padding = {3, 3}});
  return Seen(g, Halve(g, Relu(g, NormOf(g, image).y)));
}

Graph Fused(const Graph& graph) {
  return FuseNormMaxPool(graph, kernels::Selection::kFastest);
}

const Node& Only(const Graph& graph, std::string_view op) {
  for (const Node& node : graph.nodes()) {
    if (node.op->type == op) return node;
  }
  ADD_FAILURE() << "no " << op;
  return graph.nodes().front();
}

class FuseNormMaxPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::FastestImageLayout() == Layout::kRowMajor) GTEST_SKIP() << "no vectors";
  }

  static void ExpectFused(const Graph& before) {
    const Graph after = Fused(before);
    ASSERT_TRUE(after.status().ok()) << after.status();
    for (const char* op : {"batch_norm", "max_pool2d", "max_pool2d_grad", "batch_norm_grad"}) {
      EXPECT_EQ(OpsOf(before).at(op), 1) << op;
      EXPECT_EQ(OpsOf(after).count(op), 0u) << op;
    }
    EXPECT_EQ(after.nodes().size(), before.nodes().size() - 2);
    const Node &norm = Only(after, "batch_norm_max_pool2d"),
               &grad = Only(after, "batch_norm_max_pool2d_grad");
    EXPECT_EQ(norm.name, "norm");
    EXPECT_EQ(grad.inputs[0], norm.inputs[0]);
    EXPECT_EQ(grad.inputs[2], norm.outputs[1]);
    EXPECT_EQ(grad.inputs[3], norm.outputs[2]);
    EXPECT_EQ(grad.inputs[5], norm.outputs[3]);
    EXPECT_EQ(after.spec(grad.outputs[0]), after.spec(norm.inputs[0]));
  }

  static void ExpectKept(const Graph& graph) {
    ASSERT_TRUE(graph.status().ok()) << graph.status();
    EXPECT_EQ(ToString(Fused(graph)), ToString(graph));
  }
};

TEST_F(FuseNormMaxPoolTest, ABatchNormIsPooledAtOnceAndItsGradientLooksAtWhatWasLargest) {
  ExpectFused(Pooled(Halve));
}

TEST_F(FuseNormMaxPoolTest, ReluBetweenIsMadeWithItAndItsGradientOfThePooledPixels) {
  const Graph before = Pooled([](Graph& g, ValueId image) { return Halve(g, Relu(g, image)); });
  ExpectFused(before);
  const Graph after = Fused(before);
  EXPECT_EQ(Only(after, "batch_norm_max_pool2d").attributes.Int("relu"), 1);
  EXPECT_EQ(after.spec(Only(after, "relu_grad").outputs[0]),
            after.spec(Only(after, "batch_norm_max_pool2d").outputs[0]));
}

TEST_F(FuseNormMaxPoolTest, StatisticsThatOthersReadAreMadeAllTheSame) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 4, 12, 12}, DType::kF32);
  const BatchNormResult norm = NormOf(g, x);
  g.MarkOutput("mean", norm.mean);
  g.MarkOutput("variance", Scale(g, norm.variance, 2.0));
  const Graph before = Seen(g, Halve(g, norm.y));
  ExpectFused(before);
  const Graph after = Fused(before);
  const Node& fused = Only(after, "batch_norm_max_pool2d");
  for (const NamedValue& output : after.outputs()) {
    if (output.name == "mean") {
      EXPECT_EQ(output.value, fused.outputs[1]);
    }
  }
  EXPECT_EQ(Only(after, "scale").inputs[0], fused.outputs[2]);
}

TEST_F(FuseNormMaxPoolTest, AnImageThatOthersReadIsKept) {
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    return Add(g, Halve(g, image), AvgPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}));
  }));
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    g.MarkOutput("image", image);
    return Halve(g, image);
  }));
}

TEST_F(FuseNormMaxPoolTest, ABatchNormOfAllShardsIsKept) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 4, 12, 12}, DType::kF32);
  const ValueId gamma = g.Parameter("gamma", {4}, DType::kF32),
                beta = g.Parameter("beta", {4}, DType::kF32);
  ExpectKept(Seen(g, Halve(g, SynchronisedBatchNorm(g, x, gamma, beta, 1e-5, "norm").y)));
}

TEST_F(FuseNormMaxPoolTest, WhatNoKernelOfOursTakesIsKept) {
  ExpectKept(Pooled(Halve, DType::kF64));
  ExpectKept(Pooled([](Graph& g, ValueId image) {
    return MaxPool2d(g, image, {3, 3}, {{2, 2}, {1, 1}}, "pool");
  }));
  ExpectKept(PooledInBlocks());
  const Graph graph = Pooled(Halve);
  for (const auto selection : {kernels::Selection::kOneDnn, kernels::Selection::kReference})
    EXPECT_EQ(ToString(FuseNormMaxPool(graph, selection)), ToString(graph));
}

}  // namespace
}  // namespace ringmaster::graph

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

// The gradients of a ReLU that is pooled by windows of 3 x 3, which overlap.
Graph PooledRelu() {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 3, 7, 7}, DType::kF32);
  const ValueId y = Relu(g, x, "act");
  const ValueId pooled = MaxPool2d(g, y, {3, 3}, {.stride = {2, 2}}, "pool");
  g.MarkOutput("y", pooled);
  AddGradients(g, Multiply(g, pooled, g.Input("scale", g.shape(pooled), DType::kF32)));
  return g;
}

// The ops of the nodes that make a node's inputs.
std::vector<std::string> MakersOf(const Graph& graph, const Node& node) {
  std::vector<std::string> makers;
  for (const ValueId input : node.inputs) {
    const int32_t producer = graph.value(input).producer;
    makers.emplace_back(producer < 0 ? "" : graph.node(producer).op->type);
  }
  return makers;
}

const Node& OnlyNode(const Graph& graph, std::string_view op) {
  return *std::ranges::find_if(graph.nodes(), [&](const Node& n) { return n.op->type == op; });
}

TEST(DelayPoolGradsTest, TheGradientOfAPooledReluIsThatOfThePooledPixels) {
  const Graph before = PooledRelu(), after = DelayPoolGrads(before);
  EXPECT_EQ(OpsOf(after), OpsOf(Swept(before)));
  EXPECT_EQ(MakersOf(before, OnlyNode(before, "relu_grad"))[1], "max_pool2d_grad");
  const Node& relu_grad = OnlyNode(after, "relu_grad");
  EXPECT_EQ(MakersOf(after, relu_grad)[0], "max_pool2d");
  EXPECT_EQ(after.shape(relu_grad.outputs[0]), (Shape{2, 3, 3, 3}));
  EXPECT_THAT(MakersOf(after, OnlyNode(after, "max_pool2d_grad")),
              ::testing::ElementsAre("relu", "relu_grad"));
  EXPECT_THAT(MakersOf(before, OnlyNode(before, "max_pool2d_grad")),
              ::testing::ElementsAre("relu", "multiply"));
}

class BiasOfPooledTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Relu, BiasOfPooledTest, ::testing::Bool());

TEST_P(BiasOfPooledTest, ItsGradientSumsThePooledPixels) {
  Graph g;
  const ValueId x = g.Input("x", {2, 1, 8, 8}, DType::kF32);
  const ValueId weight = g.Parameter("w", {4, 1, 3, 3}, DType::kF32);
  const ValueId bias = g.Parameter("b", {4}, DType::kF32);
  const ValueId image = Conv2d(g, x, weight, bias, {}, "conv");
  const ValueId before = GetParam() ? Relu(g, image) : image;
  AddGradients(g, Tanh(g, MaxPool2d(g, before, {3, 3}, {.stride = {2, 2}})));
  const auto summed = [](const Graph& graph) {
    const Node& sums = *std::ranges::find_if(graph.nodes(), [](const Node& n) {
      return n.name.find("bias") != std::string::npos && n.op->type == "sum_to";
    });
    return graph.shape(sums.inputs[0]);
  };
  EXPECT_EQ(summed(g), (Shape{2, 4, 6, 6}));
  EXPECT_EQ(summed(DelayPoolGrads(g)), (Shape{2, 4, 2, 2}));
}

TEST(DelayPoolGradsTest, AGradientThatHasAnotherReaderStaysWhereItIs) {
  Graph g = PooledRelu();
  g.MarkOutput("before", Scale(g, OnlyNode(g, "max_pool2d_grad").outputs[0], 2.0));
  EXPECT_EQ(ToString(DelayPoolGrads(g)), ToString(Swept(g)));
}

}  // namespace
}  // namespace ringmaster::graph

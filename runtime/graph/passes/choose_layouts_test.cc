#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(ChooseLayoutsTest, ImagesOfAResNetAreMadeInBlocksAndNeverReordered) {
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  Graph g;
  BuildResNet(g);
  const Graph chosen =
      ChooseLayouts(FuseRelu(g), tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  ASSERT_TRUE(chosen.status().ok()) << chosen.status();
  EXPECT_EQ(OpsOf(chosen).at("conv2d"), 3);
  for (const Node& node : chosen.nodes()) {
    if (node.op->type != "conv2d") continue;
    EXPECT_EQ(chosen.spec(node.outputs[0]).layout, tensor::Layout::kBlocks8) << node.name;
  }
  EXPECT_EQ(OpsOf(chosen).count("reorder"), 0u) << ToString(chosen);
}

// What stands between two convolutions that work in blocks.
struct Between {
  std::string_view op;
  ValueId (*add)(Graph& g, ValueId x);
};

std::ostream& operator<<(std::ostream& out, const Between& between) {
  return out << between.op;
}

class LayoutChainTest : public ::testing::TestWithParam<Between> {};

TEST_P(LayoutChainTest, StaysInBlocksForwardAndBackward) {
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  Graph g;
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return g.Parameter(name, shape, DType::kF32);
  };
  ValueId x = g.Input("images", {2, 64, 32, 32}, DType::kF32);
  x = Conv2d(g, x, weight("w1", {64, 64, 3, 3}), weight("b1", {64}), kSame);
  x = Conv2d(g, GetParam().add(g, x), weight("w2", {64, 64, 3, 3}), weight("b2", {64}), kSame);
  AddGradients(g, Flatten(g, AdaptiveAvgPool2d(g, x, {1, 1})));
  const Graph chosen = ChooseLayouts(g, tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  ASSERT_TRUE(chosen.status().ok()) << chosen.status();
  EXPECT_EQ(OpsOf(chosen)["reorder"], 1) << "of what comes from outside\n" << ToString(chosen);
  int images = 0;
  for (const Node& node : chosen.nodes()) {
    const std::string op(GetParam().op), type(node.op->type);
    const ValueSpec& made = chosen.spec(node.outputs[0]);
    if ((type != op && type != op + "_grad") || made.shape.Product(2, 4) == 1) continue;
    EXPECT_EQ(made.layout, tensor::Layout::kBlocks8) << node.name;
    ++images;
  }
  EXPECT_GE(images, 2) << ToString(chosen);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, LayoutChainTest,
    ::testing::Values(Between{"relu", [](Graph& g, ValueId x) { return Relu(g, x); }},
                      Between{"gelu", [](Graph& g, ValueId x) { return Gelu(g, x); }},
                      Between{"exact_gelu", [](Graph& g, ValueId x) { return ExactGelu(g, x); }},
                      Between{"tanh", [](Graph& g, ValueId x) { return Tanh(g, x); }},
                      Between{"sigmoid", [](Graph& g, ValueId x) { return Sigmoid(g, x); }},
                      Between{"silu", [](Graph& g, ValueId x) { return Silu(g, x); }},
                      Between{"dropout", [](Graph& g, ValueId x) { return Dropout(g, x, 0.25); }},
                      // So small that it would go in rows if its image did.
                      Between{
                          "conv2d",
                          [](Graph& g, ValueId x) {
                            return Conv2d(g, x, g.Parameter("w", {64, 64, 1, 1}, DType::kF32), {});
                          }},
                      Between{"adaptive_avg_pool2d",
                              [](Graph& g, ValueId x) {
                                return AdaptiveAvgPool2d(g, x, {13, 11});
                              }},
                      Between{"adaptive_max_pool2d",
                              [](Graph& g, ValueId x) {
                                return AdaptiveMaxPool2d(g, x, {13, 11});
                              }},
                      Between{"max_pool2d",
                              [](Graph& g, ValueId x) {
                                return MaxPool2d(g, x, {2, 2}, {{2, 2}, {0, 0}});
                              }},
                      Between{"avg_pool2d", [](Graph& g, ValueId x) {
                                return AvgPool2d(g, x, {2, 2}, {{2, 2}, {0, 0}});
                              }}));

TEST(ChooseLayoutsTest, WhatComesFromOutsideIsReorderedOnceForAllItsReaders) {
  Graph g;
  const ValueId x = g.Input("x", {2, 32, 16, 16}, DType::kF32);
  const ValueId a = Conv2d(g, x, g.Parameter("a", {32, 32, 3, 3}, DType::kF32), ValueId{}, kSame),
                b = Conv2d(g, x, g.Parameter("b", {32, 32, 3, 3}, DType::kF32), ValueId{}, kSame);
  g.MarkOutput("y", Add(g, a, b, "sum"));
  const Graph chosen = ChooseLayouts(g, tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  ASSERT_TRUE(chosen.status().ok()) << chosen.status();
  EXPECT_EQ(OpsOf(chosen).at("reorder"), 2) << "one in, one out\n" << ToString(chosen);
  EXPECT_EQ(chosen.spec(chosen.outputs()[0].value).layout, tensor::Layout::kRowMajor);
}

TEST(ChooseLayoutsTest, ASmallConvolutionOfImagesInRowsIsMadeInRows) {
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  Graph g;
  const ValueId x = g.Input("x", {2, 64, 32, 32}, DType::kF32);
  g.MarkOutput("y", Conv2d(g, x, g.Parameter("w", {64, 64, 1, 1}, DType::kF32), ValueId{}));
  const Graph chosen = ChooseLayouts(g, tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  EXPECT_EQ(ToString(chosen), ToString(g));
}

TEST(ChooseLayoutsTest, RowMajorChangesNothing) {
  Graph g;
  BuildResNet(g);
  EXPECT_EQ(ToString(ChooseLayouts(g, tensor::Layout::kRowMajor, kernels::Selection::kFastest)),
            ToString(g));
}

}  // namespace
}  // namespace ringmaster::graph

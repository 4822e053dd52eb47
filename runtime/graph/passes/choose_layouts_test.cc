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

TEST(ChooseLayoutsTest, RowMajorChangesNothing) {
  Graph g;
  BuildResNet(g);
  EXPECT_EQ(ToString(ChooseLayouts(g, tensor::Layout::kRowMajor, kernels::Selection::kFastest)),
            ToString(g));
}

}  // namespace
}  // namespace ringmaster::graph

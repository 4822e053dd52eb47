#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

// Before and after, as far as the gradient of the block's end goes.
TEST(FuseResidualGradTest, TheGradientsOfReluAndOfTheBatchNormBeforeItBecomeOneNode) {
  Graph g;
  BuildResNet(g);
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  const Graph before =
      ChooseLayouts(FuseRelu(g), tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  const Graph after = FuseResidualGrad(before, kernels::Selection::kFastest);
  ASSERT_TRUE(after.status().ok()) << after.status();
  EXPECT_EQ(OpsOf(before).at("relu_grad"), 1);
  EXPECT_EQ(OpsOf(before).at("batch_norm_grad"), 3);
  EXPECT_EQ(OpsOf(after).count("relu_grad"), 0u);
  EXPECT_EQ(OpsOf(after).at("batch_norm_grad"), 2);
  EXPECT_EQ(OpsOf(after).at("batch_norm_add_relu_grad"), 1);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "batch_norm_add_relu_grad") continue;
    EXPECT_EQ(after.node(after.value(node.inputs[0]).producer).name, "conv2");
    EXPECT_EQ(after.node(after.value(node.inputs[4]).producer).name, "bn2");
    EXPECT_EQ(after.spec(node.outputs[3]).layout, tensor::Layout::kBlocks8);
  }
}

TEST(FuseResidualGradTest, ImagesInRowsAndOtherKernelsKeepBothNodes) {
  Graph g;
  BuildResNet(g);
  const Graph in_rows = FuseRelu(g);
  EXPECT_EQ(ToString(FuseResidualGrad(in_rows, kernels::Selection::kFastest)), ToString(in_rows));
  const Graph in_blocks =
      ChooseLayouts(in_rows, tensor::Layout::kBlocks8, kernels::Selection::kOneDnn);
  EXPECT_EQ(ToString(FuseResidualGrad(in_blocks, kernels::Selection::kOneDnn)),
            ToString(in_blocks));
}

// A batch norm without an addend, whose gradient needs no result of the ReLU behind it.
TEST(FuseResidualGradTest, AGradientThatAnotherPassHasFusedStaysAsItIs) {
  Graph g;
  const ValueId x = g.Input("x", {4, 64, 8, 8}, DType::kF32);
  const ValueId weight = g.Parameter("w", {16, 64, 3, 3}, DType::kF32);
  AddGradients(g, Relu(g, Norm(g, Conv2d(g, x, weight, ValueId{}, kSame, "conv"), "bn")));
  const Graph chosen =
      ChooseLayouts(FuseRelu(g), tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  EXPECT_EQ(ToString(FuseResidualGrad(chosen, kernels::Selection::kFastest)), ToString(chosen));
}

}  // namespace
}  // namespace ringmaster::graph

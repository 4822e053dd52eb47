#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

// Two convolutions with a ReLU between them, in blocks.
Graph TwoConvolutions(kernels::Selection selection, bool is_read_again = false) {
  Graph g;
  const ValueId x = g.Input("x", {4, 64, 8, 8}, DType::kF32);
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return g.Parameter(name, shape, DType::kF32);
  };
  const ValueId first =
      Relu(g, Conv2d(g, x, weight("w1", {64, 64, 3, 3}), ValueId{}, kSame, "conv1"), "relu");
  ValueId y = Conv2d(g, first, weight("w2", {64, 64, 3, 3}), ValueId{}, kSame, "conv2");
  if (is_read_again) y = Add(g, y, first);
  AddGradients(g, y);
  return ChooseLayouts(FuseRelu(g), Layout::kBlocks8, selection);
}

class FuseReluGradTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::FastestImageLayout() == Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  }
};

TEST_F(FuseReluGradTest, TheGradientsOfReluAndOfTheConvolutionBehindItBecomeOneNode) {
  const Graph before = TwoConvolutions(kernels::Selection::kFastest);
  const Graph after = FuseReluGrad(before, kernels::Selection::kFastest);
  ASSERT_TRUE(after.status().ok()) << after.status();
  EXPECT_EQ(OpsOf(before).at("relu_grad"), 1);
  EXPECT_EQ(OpsOf(before).at("conv2d_grad_input"), 1);
  EXPECT_EQ(OpsOf(after).count("relu_grad"), 0u);
  EXPECT_EQ(OpsOf(after).at("conv2d_grad_input"), 1);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "conv2d_grad_input") continue;
    ASSERT_EQ(node.inputs.size(), 3u);
    EXPECT_EQ(after.node(after.value(node.inputs[2]).producer).name, "conv1");
    EXPECT_EQ(after.spec(node.outputs[0]).layout, Layout::kBlocks8);
    return;
  }
}

TEST_F(FuseReluGradTest, AGradientThatComesFromSeveralReadersStaysAsItIs) {
  const Graph before = TwoConvolutions(kernels::Selection::kFastest, /*is_read_again=*/true);
  ASSERT_EQ(OpsOf(before).at("relu_grad"), 1);
  EXPECT_EQ(ToString(FuseReluGrad(before, kernels::Selection::kFastest)), ToString(before));
}

TEST_F(FuseReluGradTest, AGradientThatIsAnOutputTooStaysAsItIs) {
  Graph before = TwoConvolutions(kernels::Selection::kFastest);
  for (const Node& node : before.nodes()) {
    if (node.op->type != "conv2d_grad_input") continue;
    before.MarkOutput("gradient", node.outputs[0]);
    break;
  }
  ASSERT_TRUE(before.status().ok()) << before.status();
  EXPECT_EQ(ToString(FuseReluGrad(before, kernels::Selection::kFastest)), ToString(before));
}

TEST_F(FuseReluGradTest, OtherKernelsKeepBothNodes) {
  const Graph before = TwoConvolutions(kernels::Selection::kOneDnn);
  ASSERT_EQ(OpsOf(before).at("relu_grad"), 1);
  EXPECT_EQ(ToString(FuseReluGrad(before, kernels::Selection::kOneDnn)), ToString(before));
}

TEST_F(FuseReluGradTest, ImagesInRowsKeepBothNodes) {
  Graph g;
  const ValueId x = g.Input("x", {4, 64, 8, 8}, DType::kF32);
  const ValueId w1 = g.Parameter("w1", {64, 64, 3, 3}, DType::kF32);
  const ValueId w2 = g.Parameter("w2", {64, 64, 3, 3}, DType::kF32);
  AddGradients(g, Conv2d(g, Relu(g, Conv2d(g, x, w1, ValueId{}, kSame)), w2, ValueId{}, kSame));
  const Graph in_rows = FuseRelu(g);
  EXPECT_EQ(ToString(FuseReluGrad(in_rows, kernels::Selection::kFastest)), ToString(in_rows));
}

}  // namespace
}  // namespace ringmaster::graph

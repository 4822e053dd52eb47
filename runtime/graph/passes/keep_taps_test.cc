#include <functional>

#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

// A convolution that asks for blocks, ReLU, what is behind, and something whose gradient reads what
// was pooled; as KeepTaps sees it.
Graph Pooled(const std::function<ValueId(Graph& g, ValueId image)>& behind, Layout layout,
             const Shape& shape = {2, 64, 4, 6}) {
  Graph g;
  const ValueId x = g.Input("x", shape, DType::kF32);
  const ValueId weight = g.Parameter("w", {16, 64, 3, 3}, DType::kF32);
  AddGradients(g, Tanh(g, behind(g, Relu(g, Conv2d(g, x, weight, ValueId{}, kSame, "conv")))));
  return ChooseLayouts(FuseRelu(DelayPoolGrads(g)), layout, kernels::Selection::kFastest);
}

ValueId Halve(Graph& g, ValueId image) {
  return MaxPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}, "pool");
}

class KeepTapsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::FastestImageLayout() == Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  }
};

TEST_F(KeepTapsTest, AnImageThatOnlyItsPoolingReadsIsNotReadByTheGradient) {
  const Graph before = Pooled(Halve, Layout::kBlocks8);
  const Graph after = KeepTaps(before, kernels::Selection::kFastest);
  ASSERT_TRUE(after.status().ok()) << after.status();
  EXPECT_EQ(OpsOf(before).at("max_pool2d"), 1);
  EXPECT_EQ(OpsOf(before).at("max_pool2d_grad"), 1);
  EXPECT_EQ(OpsOf(after).count("max_pool2d"), 0u);
  EXPECT_EQ(OpsOf(after).count("max_pool2d_grad"), 0u);
  EXPECT_EQ(OpsOf(after).at("max_pool2d_taps"), 1);
  for (const Node& node : after.nodes()) {
    if (node.op->type != "max_pool2d_taps_grad") continue;
    EXPECT_EQ(after.node(after.value(node.inputs[1]).producer).name, "pool");
    EXPECT_EQ(after.spec(node.inputs[1]), (ValueSpec{{2 * 16 * 2 * 3}, DType::kU8}));
    EXPECT_EQ(after.spec(node.outputs[0]),
              (ValueSpec{{2, 16, 4, 6}, DType::kF32, Layout::kBlocks8}));
    return;
  }
  ADD_FAILURE() << "no max_pool2d_taps_grad";
}

// Training keeps the statistics of a norm, as outputs, beside the image that is pooled.
TEST_F(KeepTapsTest, TheImageOfANormWhoseStatisticsAreOutputsIsNotReadByTheGradient) {
  Graph g;
  const ValueId x = g.Input("x", {2, 64, 4, 6}, DType::kF32);
  const ValueId weight = g.Parameter("w", {16, 64, 3, 3}, DType::kF32);
  const ValueId gamma = g.Parameter("gamma", {16}, DType::kF32),
                beta = g.Parameter("beta", {16}, DType::kF32);
  const BatchNormResult norm =
      BatchNorm(g, Conv2d(g, x, weight, ValueId{}, kSame, "conv"), gamma, beta, 1e-5, "norm");
  g.MarkOutput("mean", norm.mean);
  AddGradients(g, Tanh(g, Halve(g, Relu(g, norm.y))));
  const Graph before =
      ChooseLayouts(FuseRelu(DelayPoolGrads(g)), Layout::kBlocks8, kernels::Selection::kFastest);
  const Graph after = KeepTaps(before, kernels::Selection::kFastest);
  EXPECT_EQ(OpsOf(before).at("max_pool2d_grad"), 1);
  EXPECT_EQ(OpsOf(after).count("max_pool2d_grad"), 0u);
  EXPECT_EQ(OpsOf(after).at("max_pool2d_taps"), 1);
}

TEST_F(KeepTapsTest, AnImageThatOthersReadStays) {
  const auto read_twice = [](Graph& g, ValueId image) {
    return Add(g, Halve(g, image), AvgPool2d(g, image, {2, 2}, {{2, 2}, {0, 0}}));
  };
  const auto as_output = [](Graph& g, ValueId image) {
    g.MarkOutput("image", image);
    return Halve(g, image);
  };
  for (const Graph& graph :
       {Pooled(read_twice, Layout::kBlocks8), Pooled(as_output, Layout::kBlocks8)}) {
    ASSERT_EQ(OpsOf(graph).count("max_pool2d_grad"), 1u);
    EXPECT_EQ(ToString(KeepTaps(graph, kernels::Selection::kFastest)), ToString(graph));
  }
}

TEST_F(KeepTapsTest, AWindowOfMorePlacesThanAByteNumbersKeepsTheImage) {
  const auto pooled_over = [](int64_t side) {
    const auto pool = [side](Graph& g, ValueId image) {
      return MaxPool2d(g, image, {side, 16}, {{side, 16}, {0, 0}}, "pool");
    };
    return KeepTaps(Pooled(pool, Layout::kBlocks8, {1, 64, 34, 32}), kernels::Selection::kFastest);
  };
  EXPECT_EQ(OpsOf(pooled_over(16)).count("max_pool2d_taps"), 1u);
  EXPECT_EQ(OpsOf(pooled_over(17)).count("max_pool2d_taps"), 0u);
  EXPECT_EQ(OpsOf(pooled_over(17)).count("max_pool2d_grad"), 1u);
}

TEST_F(KeepTapsTest, ImagesInRowsAndOtherKernelsKeepBothNodes) {
  const Graph in_rows = Pooled(Halve, Layout::kRowMajor),
              in_blocks = Pooled(Halve, Layout::kBlocks8);
  EXPECT_EQ(ToString(KeepTaps(in_rows, kernels::Selection::kFastest)), ToString(in_rows));
  EXPECT_EQ(ToString(KeepTaps(in_blocks, kernels::Selection::kOneDnn)), ToString(in_blocks));
}

}  // namespace
}  // namespace ringmaster::graph

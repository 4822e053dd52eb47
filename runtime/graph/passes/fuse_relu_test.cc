#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(FuseReluTest, BatchNormAndReluBecomeOneNode) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  g.MarkOutput("y", Relu(g, Norm(g, x, "bn"), "act"));
  EXPECT_EQ(ToString(FuseRelu(g)),
            "input x: f32[2, 3, 4, 4]\n"
            "parameter bn.gamma: f32[3]\n"
            "parameter bn.beta: f32[3]\n"
            "%3, %4, %5 = bn: batch_norm(x, bn.gamma, bn.beta) {epsilon=1e-05 relu=1} -> "
            "f32[2, 3, 4, 4], f32[3], f32[3]\n"
            "output y = %3\n");
}

TEST(FuseReluTest, AConvolutionOrALinearLayerTakesItsReluToo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 2, 2}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {4, 3, 1, 1}, DType::kF32),
                matrix = g.Parameter("matrix", {5, 16}, DType::kF32);
  const ValueId y = Flatten(g, Relu(g, Conv2d(g, x, weight, ValueId{}, {}, "conv")), "flat");
  g.MarkOutput("y", Relu(g, Linear(g, y, matrix, ValueId{}, "fc")));
  EXPECT_EQ(ToString(FuseRelu(g)),
            "input x: f32[2, 3, 2, 2]\n"
            "parameter weight: f32[4, 3, 1, 1]\n"
            "parameter matrix: f32[5, 16]\n"
            "%3 = conv: conv2d(x, weight) {stride=[1, 1] padding=[0, 0] dilation=[1, 1] groups=1 "
            "relu=1} -> f32[2, 4, 2, 2]\n"
            "%4 = flat: reshape(%3) {shape=[2, 16]} -> f32[2, 16]\n"
            "%5 = fc: linear(%4, matrix) {relu=1} -> f32[2, 5]\n"
            "output y = %5\n");
}

TEST(FuseReluTest, TheGradientOfAConvolutionsReluReadsItsResult) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {4, 3, 3, 3}, DType::kF32);
  AddGradients(g, Relu(g, Conv2d(g, x, weight, ValueId{}, kSame, "conv")));
  const Graph fused = FuseRelu(g);
  EXPECT_EQ(OpsOf(fused).count("relu"), 0u);
  for (const Node& node : fused.nodes()) {
    if (node.op->type != "relu_grad") continue;
    EXPECT_EQ(fused.node(fused.value(node.inputs[0]).producer).name, "conv");
  }
}

TEST(FuseReluTest, TheSumBetweenThemBecomesTheNodesAddend) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  g.MarkOutput("y", Relu(g, Add(g, x, Norm(g, x, "bn"), "sum"), "act"));
  EXPECT_EQ(ToString(FuseRelu(g)),
            "input x: f32[2, 3, 4, 4]\n"
            "parameter bn.gamma: f32[3]\n"
            "parameter bn.beta: f32[3]\n"
            "%3, %4, %5 = bn: batch_norm(x, bn.gamma, bn.beta, x) {epsilon=1e-05 relu=1} -> "
            "f32[2, 3, 4, 4], f32[3], f32[3]\n"
            "output y = %3\n");
}

TEST(FuseReluTest, ASynchronisedBatchNormTakesTheSumAndTheReluBehindItToo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  const ValueId gamma = g.Parameter("gamma", {3}, DType::kF32),
                beta = g.Parameter("beta", {3}, DType::kF32);
  const ValueId y = SynchronisedBatchNorm(g, x, gamma, beta, 1e-5, "bn").y;
  g.MarkOutput("y", Relu(g, Add(g, x, y)));
  const Graph fused = FuseRelu(g);
  EXPECT_THAT(ToString(fused),
              ::testing::HasSubstr("bn: batch_norm_synchronised(x, gamma, beta, %5, %6, x) "
                                   "{epsilon=1e-05 relu=1} -> f32[2, 3, 4, 4]\n"
                                   "output y = %8\n"));
  EXPECT_THAT(OpsOf(fused),
              ::testing::UnorderedElementsAre(
                  std::pair("batch_moments", 1), std::pair("sum_over_shards", 1),
                  std::pair("batch_statistics", 1), std::pair("batch_norm_synchronised", 1)));
}

TEST(FuseReluTest, OfTwoNormalisedTermsOneKeepsItsOwnNode) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  g.MarkOutput("y", Relu(g, Add(g, Norm(g, x, "a"), Norm(g, x, "b"))));
  EXPECT_THAT(OpsOf(FuseRelu(g)), ::testing::UnorderedElementsAre(std::pair("batch_norm", 2)));
}

TEST(FuseReluTest, WhatSomebodyElseReadsIsKept) {
  Graph g;
  const ValueId normalised = Norm(g, g.Input("x", {2, 3, 4, 4}, DType::kF32), "bn");
  g.MarkOutput("y", Relu(g, normalised));
  g.MarkOutput("normalised", normalised);
  const ValueId product =
      Linear(g, g.Input("rows", {2, 3}, DType::kF32), g.Parameter("w", {4, 3}, DType::kF32), {});
  g.MarkOutput("both", Add(g, Relu(g, product), product));
  EXPECT_THAT(OpsOf(FuseRelu(g)),
              ::testing::UnorderedElementsAre(std::pair("batch_norm", 1), std::pair("relu", 2),
                                              std::pair("linear", 1), std::pair("add", 1)));
}

TEST(FuseReluTest, TheGradientOfBothIsOneNodeToo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  AddGradients(g, Relu(g, Norm(g, x, "bn")));
  const auto ops = OpsOf(FuseRelu(g));
  EXPECT_EQ(OpsOf(g).count("relu_grad"), 1u);
  EXPECT_EQ(ops.count("relu_grad"), 0u);
  EXPECT_EQ(ops.at("batch_norm_grad"), 1);
}

TEST(FuseReluTest, TwoGradientsThatMeetAtAReluAreSummedInIt) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 3}, DType::kF32);
  const ValueId y = Relu(g, x);
  AddGradients(g, Add(g, Tanh(g, y), Gelu(g, y)));
  const Graph fused = FuseRelu(g);
  EXPECT_EQ(OpsOf(g).at("add"), 3);
  EXPECT_EQ(OpsOf(fused).at("add"), 1) << "the one that spreads the gradient of the sum";
  for (const Node& node : fused.nodes()) {
    if (node.op->type == "relu_grad") {
      EXPECT_EQ(node.inputs.size(), 3u);
    }
  }
}

TEST(FuseReluTest, AnEvaluationsBatchNormTakesTheSumAndTheReluBehindItToo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  std::vector<ValueId> of_channels;
  for (const char* name : {"gamma", "beta", "mean", "variance"})
    of_channels.push_back(g.State(name, {3}, DType::kF32));
  const ValueId y = BatchNormInference(g, x, of_channels[0], of_channels[1], of_channels[2],
                                       of_channels[3], 1e-5, "bn");
  g.MarkOutput("y", Relu(g, Add(g, x, y)));
  const Graph fused = FuseRelu(g);
  EXPECT_THAT(ToString(fused),
              ::testing::HasSubstr("bn: batch_norm_inference(x, gamma, beta, mean, variance, x) "
                                   "{epsilon=1e-05 relu=1} -> f32[2, 3, 4, 4]\n"));
  EXPECT_EQ(OpsOf(fused).size(), 1u);
}

}  // namespace
}  // namespace ringmaster::graph

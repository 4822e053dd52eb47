#include "runtime/graph/passes/passes.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/requirements.h"

namespace ringmaster::graph {
namespace {

constexpr Conv2dOptions kSame{{1, 1}, {1, 1}};

// How many nodes there are of each op.
std::map<std::string, int> OpsOf(const Graph& graph) {
  std::map<std::string, int> ops;
  for (const Node& node : graph.nodes()) ++ops[std::string(node.op->type)];
  return ops;
}

// Without what no output needs any more.
Graph Swept(const Graph& graph) {
  return MergeEqualNodes(graph);
}

// batch_norm of x with parameters of its own.
ValueId Norm(Graph& g, ValueId x, const std::string& name) {
  const Shape channels = {g.shape(x).dim(1)};
  const ValueId gamma = g.Parameter(name + ".gamma", channels, DType::kF32);
  const ValueId beta = g.Parameter(name + ".beta", channels, DType::kF32);
  return BatchNorm(g, x, gamma, beta, 1e-5, name).y;
}

// Marks the gradients by all parameters as outputs.
void AddGradients(Graph& g, ValueId y) {
  const std::vector<ValueId> parameters = g.OfKind(ValueKind::kParameter);
  const auto gradients = Differentiate(g, SumAll(g, y), parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  for (size_t i = 0; i < parameters.size(); ++i)
    g.MarkOutput("grad." + g.value(parameters[i]).name, (*gradients)[i]);
}

TEST(FoldConstantsTest, WhatFollowsFromConstantsIsAConstant) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const ValueId two = Constant(g, 2.0, {{2, 3}, DType::kF32}, "two"),
                three = Constant(g, 3.0, {{3}, DType::kF32}, "three");
  g.MarkOutput("y", Add(g, x, Scale(g, Add(g, two, three, "five"), -0.5, "half"), "sum"));
  const Graph folded = FoldConstants(g, kernels::Selection::kFastest);
  EXPECT_THAT(ToString(folded),
              ::testing::HasSubstr("half: constant() {value=-2.5 shape=[2, 3] dtype=0} -> f32"));
  EXPECT_THAT(ToString(folded), ::testing::HasSubstr("sum: add(x, %4)"));
}

TEST(FoldConstantsTest, SeveralNumbersStayAsTheyAre) {
  Graph g;
  const ValueId one = Constant(g, 1.0, {{2, 3}, DType::kF32});
  const int64_t before[] = {0, 1}, after[] = {0, 0};
  g.MarkOutput("y", Scale(g, Pad(g, one, before, after), 2.0));
  EXPECT_EQ(OpsOf(FoldConstants(g, kernels::Selection::kFastest)).at("pad"), 1);
}

TEST(FoldConstantsTest, WhatIsRandomOrAnOutputStaysAsItIs) {
  Graph g;
  const ValueId one = Constant(g, 1.0, {{2, 3}, DType::kF32});
  g.MarkOutput("mask", Scale(g, Dropout(g, one, 0.5), 2.0));
  g.MarkOutput("two", Scale(g, one, 2.0));
  EXPECT_EQ(ToString(FoldConstants(g, kernels::Selection::kFastest)), ToString(g));
}

TEST(FoldConstantsTest, TheGradientOfASumNeedsNoSum) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 3}, DType::kF32);
  AddGradients(g, Multiply(g, x, g.Input("scale", {2, 3}, DType::kF32)));
  EXPECT_THAT(OpsOf(g),
              ::testing::UnorderedElementsAre(std::pair("constant", 2), std::pair("add", 1),
                                              std::pair("sum_to", 1), std::pair("multiply", 2)));
  // All that is left of it is a copy of "scale" into the output.
  EXPECT_THAT(OpsOf(Swept(Simplify(FoldConstants(g, kernels::Selection::kFastest)))),
              ::testing::UnorderedElementsAre(std::pair("copy", 1)));
}

TEST(SimplifyTest, WhatGivesItsInputBackIsLeftOut) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const int64_t zeros[] = {0, 0}, in_order[] = {0, 1};
  ValueId y = Reshape(g, x, {2, 3});
  y = Slice(g, y, zeros, {2, 3});
  y = Pad(g, y, zeros, zeros);
  y = Transpose(g, y, in_order);
  y = Concat(g, {&y, 1}, 1);
  y = g.AddOne("copy", {}, {y});
  y = Dropout(g, Scale(g, y, 1.0), 0.0);
  y = Multiply(g, y, Constant(g, 1.0, {{3}, DType::kF32}));
  y = Multiply(g, Constant(g, 1.0, {{2, 3}, DType::kF32}), y);
  g.MarkOutput("y", Relu(g, Relu(g, y, "first"), "second"));
  EXPECT_EQ(ToString(Swept(Simplify(g))),
            "input x: f32[2, 3]\n"
            "%1 = first: relu(x) -> f32[2, 3]\n"
            "output y = %1\n");
}

TEST(SimplifyTest, TwoReshapesOrTransposesBecomeOneOrNone) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4}, DType::kF32);
  const int64_t turn[] = {1, 2, 0}, back[] = {2, 0, 1};
  const ValueId turned = Transpose(g, x, turn, "turned");
  g.MarkOutput("same", Scale(g, Transpose(g, turned, back), 2.0));
  g.MarkOutput("twice", Scale(g, Transpose(g, turned, turn, "twice"), 2.0));
  const ValueId flat = Flatten(g, x, "flat");
  g.MarkOutput("shaped", Scale(g, Reshape(g, flat, {2, 3, 4}), 2.0));
  g.MarkOutput("flatter", Scale(g, Reshape(g, flat, {24}, "flatter"), 2.0));
  const std::string text = ToString(Simplify(g));
  EXPECT_THAT(text, ::testing::HasSubstr("twice: transpose(x) {axes=[2, 0, 1]} -> f32[4, 2, 3]"));
  EXPECT_THAT(text, ::testing::HasSubstr("flatter: reshape(x) {shape=[24]} -> f32[24]"));
  EXPECT_EQ(OpsOf(Swept(Simplify(g))),
            (std::map<std::string, int>{{"transpose", 1}, {"reshape", 1}, {"scale", 4}}));
}

TEST(SimplifyTest, WhatChangesASignOfZeroOrARoundingStays) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  g.MarkOutput("sum", SumTo(g, x, {2, 3}));
  g.MarkOutput("same", Add(g, x, Constant(g, 0.0, {{3}, DType::kF32})));
  g.MarkOutput("scaled", Scale(g, Scale(g, x, 0.1), 0.1));
  EXPECT_EQ(ToString(Simplify(g)), ToString(g));
}

TEST(MergeEqualNodesTest, WhatIsComputedTwiceIsComputedOnce) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const ValueId a = Gelu(g, Scale(g, x, 2.0), "a"), b = Gelu(g, Scale(g, x, 2.0), "b");
  g.MarkOutput("y", Add(g, a, b, "sum"));
  EXPECT_EQ(ToString(MergeEqualNodes(g)),
            "input x: f32[2, 3]\n"
            "%1 = scale_0: scale(x) {factor=2} -> f32[2, 3]\n"
            "%2 = a: gelu(%1) -> f32[2, 3]\n"
            "%3 = sum: add(%2, %2) -> f32[2, 3]\n"
            "output y = %3\n");
}

TEST(MergeEqualNodesTest, OfAnOpWithSeveralOutputsAllAreShared) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  const ValueId gamma = g.Parameter("gamma", {3}, DType::kF32),
                beta = g.Parameter("beta", {3}, DType::kF32);
  const BatchNormResult a = BatchNorm(g, x, gamma, beta, 1e-5),
                        b = BatchNorm(g, x, gamma, beta, 1e-5);
  g.MarkOutput("y", Add(g, a.y, b.y));
  g.MarkOutput("mean", Add(g, a.mean, b.variance));
  EXPECT_THAT(OpsOf(MergeEqualNodes(g)),
              ::testing::UnorderedElementsAre(std::pair("batch_norm", 1), std::pair("add", 2)));
}

TEST(MergeEqualNodesTest, AnotherAttributeOrOrderOfInputsIsAnotherNode) {
  Graph g;
  const ValueId x = g.Input("x", {2, 2}, DType::kF32), y = g.Input("y", {2, 2}, DType::kF32);
  g.MarkOutput("scaled", Add(g, Scale(g, x, 0.0), Scale(g, x, -0.0)));
  g.MarkOutput("product", Add(g, MatMul(g, x, y), MatMul(g, y, x)));
  EXPECT_EQ(ToString(MergeEqualNodes(g)), ToString(g));
}

TEST(MergeEqualNodesTest, MasksOfTwoDropoutsStayTwo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 8}, DType::kF32);
  g.MarkOutput("y", Add(g, Dropout(g, x, 0.5), Dropout(g, x, 0.5)));
  EXPECT_EQ(OpsOf(MergeEqualNodes(g)).at("dropout"), 2);
}

TEST(MergeEqualNodesTest, EachOutputKeepsANodeOfItsOwn) {
  Graph g;
  const ValueId x = g.Input("x", {2, 8}, DType::kF32);
  g.MarkOutput("a", Tanh(g, x));
  g.MarkOutput("b", Tanh(g, x));
  EXPECT_EQ(ToString(MergeEqualNodes(g)), ToString(g));
}

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

TEST(DelayPoolGradsTest, AGradientThatHasAnotherReaderStaysWhereItIs) {
  Graph g = PooledRelu();
  g.MarkOutput("before", Scale(g, OnlyNode(g, "max_pool2d_grad").outputs[0], 2.0));
  EXPECT_EQ(ToString(DelayPoolGrads(g)), ToString(Swept(g)));
}

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

// A stem, a residual block and a classifier.
void BuildResNet(Graph& g) {
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return g.Parameter(name, shape, DType::kF32);
  };
  const ValueId images = g.Input("images", {4, 3, 64, 64}, DType::kF32);
  ValueId x = Conv2d(g, images, weight("stem", {16, 3, 3, 3}), ValueId{}, kSame, "stem");
  x = MaxPool2d(g, Relu(g, Norm(g, x, "bn0")), {3, 3}, {{2, 2}, {1, 1}});
  ValueId y = Conv2d(g, x, weight("w1", {16, 16, 3, 3}), ValueId{}, kSame, "conv1");
  y = Relu(g, Norm(g, y, "bn1"));
  y = Conv2d(g, y, weight("w2", {16, 16, 3, 3}), ValueId{}, kSame, "conv2");
  y = Relu(g, Add(g, Norm(g, y, "bn2"), x));
  y = Flatten(g, AdaptiveAvgPool2d(g, y, {1, 1}));
  AddGradients(g, Linear(g, y, weight("fc", {10, 16}), ValueId{}));
}

TEST(ChooseLayoutsTest, ImagesOfAResNetAreNeverReordered) {
  Graph g;
  BuildResNet(g);
  const Graph fused = FuseRelu(g);
  const Graph chosen = ChooseLayouts(fused, tensor::Layout::kBlocks8, kernels::Selection::kFastest);
  ASSERT_TRUE(chosen.status().ok()) << chosen.status();
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) return;
  EXPECT_EQ(OpsOf(chosen).count("reorder"), 0u) << ToString(chosen);
}

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

TEST(FuseGeluTest, ALinearLayerTakesTheGeluWhoseGradientReadsItsResult) {
  Graph g;
  const ValueId x = g.Input("x", {4, 3}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {5, 3}, DType::kF32),
                bias = g.Parameter("bias", {5}, DType::kF32);
  const ValueId y = Gelu(g, Linear(g, x, weight, bias, "fc"), "act");
  AddGradients(g, Multiply(g, y, y));  // whose gradient reads y
  const Graph after = FuseGelu(g);
  EXPECT_THAT(ToString(g), ::testing::HasSubstr("fc: linear(x, weight, bias) -> f32[4, 5]\n"));
  EXPECT_EQ(OpsOf(g).at("gelu_grad"), 1);
  EXPECT_THAT(ToString(after), ::testing::HasSubstr("%3, %4 = fc: linear_gelu(x, weight, bias) -> "
                                                    "f32[4, 5], f32[4, 5]\n"));
  EXPECT_THAT(ToString(after), ::testing::HasSubstr("gelu_grad(%4, "));
  EXPECT_EQ(OpsOf(after).count("linear") + OpsOf(after).count("gelu"), 0u);
}

TEST(FuseGeluTest, WithoutAGradientGeluKeepsItsNodeAndTakesTheResultsPlace) {
  Graph g;
  const ValueId x = g.Input("x", {4, 3}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {5, 3}, DType::kF32);
  const ValueId y = Gelu(g, Linear(g, x, weight, ValueId{}, "fc"), "act");
  g.MarkOutput("y", Scale(g, y, 2.0));
  EXPECT_EQ(ToString(FuseGelu(g)), ToString(g));
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

TEST(RequirementsTest, AreThoseOfWhatTheExecutorRuns) {
  Graph g;
  BuildResNet(g);
  const auto requirements = RequirementsOf(g, {});
  const auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(requirements.ok() && executor.ok());
  EXPECT_EQ(requirements->implementation_names, (*executor)->ImplementationNames());
  EXPECT_EQ(requirements->arena_bytes, (*executor)->arena_bytes());
}

TEST(GraphTest, OnlyWholeBlocksOfChannelsLieInBlocks) {
  Graph g;
  const ValueId x = g.Input("x", {2, 12, 4, 4}, DType::kF32);
  g.AddOne("reorder", {{std::string(kLayoutAttribute), int64_t{8}}}, {x}, "blocks");
  EXPECT_THAT(std::string(g.status().message()),
              ::testing::HasSubstr("only channels of [N, C, H, W] lie in blocks"));
}

}  // namespace
}  // namespace ringmaster::graph

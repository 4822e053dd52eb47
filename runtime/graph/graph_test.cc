#include "runtime/graph/graph.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

using ::testing::HasSubstr;

TEST(GraphTest, PrintsItselfOneLinePerValueNodeAndOutput) {
  Graph g;
  const ValueId x = g.Input("images", {2, 1, 4, 4}, DType::kF32);
  const ValueId w = g.Parameter("fc.weight", {3, 16}, DType::kF32);
  const ValueId b = g.Parameter("fc.bias", {3}, DType::kF32);
  g.MarkOutput("logits", Relu(g, Linear(g, Flatten(g, x, "flat"), w, b, "fc"), "act"));
  EXPECT_EQ(ToString(g),
            "input images: f32[2, 1, 4, 4]\n"
            "parameter fc.weight: f32[3, 16]\n"
            "parameter fc.bias: f32[3]\n"
            "%3 = flat: reshape(images) {shape=[2, 16]} -> f32[2, 16]\n"
            "%4 = fc: linear(%3, fc.weight, fc.bias) -> f32[2, 3]\n"
            "%5 = act: relu(%4) -> f32[2, 3]\n"
            "output logits = %5\n");
}

TEST(GraphTest, TheFirstErrorSticksAndLaterCallsDoNothing) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const ValueId bad = MatMul(g, x, x, false, false, "first");
  EXPECT_FALSE(bad.valid());
  const ValueId after = Relu(g, bad);
  EXPECT_FALSE(after.valid());
  EXPECT_FALSE(MatMul(g, x, x, false, false, "second").valid());
  EXPECT_EQ(Message(g.status()),
            "first (matmul): cannot multiply [2, 3] by [2, 3]; inputs: f32[2, 3], f32[2, 3]");
  EXPECT_TRUE(g.nodes().empty());
}

TEST(GraphTest, AShapeThatDoesNotFitIsSaidWithWhatIsWrong) {
  const auto problem = [](const auto& add) {
    Graph g;
    add(g, g.Input("x", {2, 3, 4}, DType::kF32));
    return Message(g.status());
  };
  EXPECT_EQ(problem([](Graph& g, ValueId x) { BatchMatMul(g, x, x, false, false, "p"); }),
            "p (batch_matmul): cannot multiply [3, 4] by [3, 4]; inputs: f32[2, 3, 4], f32[2, 3, "
            "4]");
  EXPECT_EQ(problem([](Graph& g, ValueId x) {
              BatchMatMul(g, x, Reshape(g, x, {4, 3, 2}), true, false, "p");
            }),
            "p (batch_matmul): the axes before the matrices' differ; inputs: f32[2, 3, 4], f32[4, "
            "3, 2]");
  for (const std::vector<int64_t>& axes :
       std::vector<std::vector<int64_t>>{{0, 1}, {0, 1, 1}, {0, 1, 3}, {0, -1, 2}, {0, 1, 2, 3}}) {
    EXPECT_TRUE(problem([&](Graph& g, ValueId x) {
                  Transpose(g, x, axes, "t");
                }).starts_with("t (transpose): ["));
  }
  EXPECT_EQ(problem([](Graph& g, ValueId x) {
              const int64_t axes[] = {0, 1, 1};
              Transpose(g, x, axes, "t");
            }),
            "t (transpose): [0, 1, 1] is no order of [2, 3, 4]'s 3 axes; inputs: f32[2, 3, 4]");
}

TEST(GraphTest, NodesGetNamesThatAreUnique) {
  Graph g;
  const ValueId x = g.Input("x", {2}, DType::kF32);
  Relu(g, x);
  Relu(g, x, "act");
  Relu(g, x, "act");
  EXPECT_EQ(g.node(0).name, "relu_0");
  EXPECT_EQ(g.node(1).name, "act");
  EXPECT_EQ(g.node(2).name, "act_2");
}

TEST(GraphTest, FindsWhatWasDeclaredByNameAndKind) {
  Graph g;
  const ValueId x = g.Input("x", {2}, DType::kF32);
  const ValueId p = g.Parameter("p", {2}, DType::kF32);
  const ValueId s = g.State("s", {2}, DType::kF32);
  EXPECT_EQ(g.Find("p"), p);
  EXPECT_FALSE(g.Find("q").valid());
  EXPECT_EQ(g.OfKind(ValueKind::kInput), std::vector{x});
  EXPECT_EQ(g.OfKind(ValueKind::kState), std::vector{s});
}

TEST(GraphTest, AnOutputThatIsNoNodesOwnIsCopied) {
  Graph g;
  const ValueId x = g.Input("x", {2}, DType::kF32);
  const ValueId y = Relu(g, x);
  g.MarkOutput("x_again", x);
  g.MarkOutput("y", y);
  g.MarkOutput("y_again", y);
  g.MarkOutput("y_reshaped", Reshape(g, y, {2, 1}));
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_EQ(g.outputs().size(), 4u);
  EXPECT_EQ(g.outputs()[1].value, y);
  for (const size_t i : {0, 2, 3}) EXPECT_NE(g.outputs()[i].value, y);
}

TEST(GraphTest, RandomOpsAreNumberedAlikeInEveryBuildOfTheModel) {
  for (const int64_t batch : {4, 8}) {
    Graph g;
    const ValueId x = g.Input("x", {batch, 2}, DType::kF32);
    Dropout(g, Dropout(g, x, 0.5), 0.5);
    EXPECT_EQ(g.node(0).attributes.Int("random_op"), 0);
    EXPECT_EQ(g.node(1).attributes.Int("random_op"), 1);
  }
}

TEST(GraphTest, OnlyWholeBlocksOfChannelsLieInBlocks) {
  Graph g;
  const ValueId x = g.Input("x", {2, 12, 4, 4}, DType::kF32);
  g.AddOne("reorder", {{std::string(kLayoutAttribute), int64_t{8}}}, {x}, "blocks");
  EXPECT_THAT(std::string(g.status().message()),
              HasSubstr("only channels of [N, C, H, W] lie in blocks"));
}

struct Mistake {
  const char* name;
  std::function<void(Graph&)> make;
  const char* message;
};

void PrintTo(const Mistake& m, std::ostream* os) {
  *os << m.name;
}

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamedWithItsNodeAndShapes) {
  Graph g;
  GetParam().make(g);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(g.status()), HasSubstr(GetParam().message));
}

ValueId In(Graph& g, const Shape& shape, DType dtype = DType::kF32) {
  return g.Input("in" + std::to_string(g.values().size()), shape, dtype);
}

const Mistake kMistakes[] = {
    {"NameTwice",
     [](Graph& g) { g.Input("x", {1}, DType::kF32), g.Parameter("x", {1}, DType::kF32); },
     "parameter \"x\": the name is used twice"},
    {"NoName", [](Graph& g) { g.Input("", {1}, DType::kF32); }, "input \"\" needs a name"},
    {"NoElements",
     [](Graph& g) {
       g.Input("x", {4, 0}, DType::kF32);
     },
     "input \"x\": every extent must be at least 1, got [4, 0]"},
    {"TooManyElements",
     [](Graph& g) {
       g.Input("x", {int64_t{1} << 31, int64_t{1} << 31, int64_t{1} << 31}, DType::kF32);
     },
     "input \"x\": too large: a value has at most 1099511627776 elements, got [2147483648, "},
    {"ResultTooLarge",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 1, 1}), ValueId{},
              {{1, 1}, {2147483647, 2147483647}}, "conv1");
     },
     "conv1 (conv2d): the result would be f32[2, 6, 4294967298, 4294967298]: too large"},
    {"OutputTwice",
     [](Graph& g) {
       const ValueId x = Relu(g, In(g, {1}));
       g.MarkOutput("y", x);
       g.MarkOutput("y", x);
     },
     "output \"y\" is marked twice"},
    {"OutputOfNothing", [](Graph& g) { g.MarkOutput("y", ValueId{}); },
     "output \"y\" has no value"},
    {"InputOfNothing", [](Graph& g) { Relu(g, ValueId{}, "act"); },
     "act (relu): input 0 is not a value of this graph"},
    {"ConvolutionChannels",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 3, 8, 8}), In(g, {6, 1, 5, 5}), ValueId{}, {}, "conv1");
     },
     "conv1 (conv2d): weight [6, 1, 5, 5] takes 1 channels, x [2, 3, 8, 8] has 3"},
    {"ConvolutionTooLarge",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 5, 5}), ValueId{});
     },
     "the kernel is larger than the padded image; inputs: f32[2, 1, 4, 4], f32[6, 1, 5, 5]"},
    {"ConvolutionStride",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 3, 3}), ValueId{}, {{0, 1}, {0, 0}});
     },
     "strides must be at least 1"},
    {"ConvolutionBias",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 3, 3}), In(g, {5}));
     },
     "bias must be [6], got [5]"},
    {"ConvolutionAxes",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 4, 4}), In(g, {6, 1, 3, 3}), ValueId{});
     },
     "x must have 4 axes, got [2, 4, 4]"},
    {"ConvolutionGroups",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 6, 8, 8}), In(g, {4, 6, 3, 3}), ValueId{}, {.groups = 4}, "conv1");
     },
     "conv1 (conv2d): 6 input and 4 output channels do not divide into 4 groups"},
    {"ConvolutionChannelsOfAGroup",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 6, 8, 8}), In(g, {4, 6, 3, 3}), ValueId{}, {.groups = 2});
     },
     "weight [4, 6, 3, 3] takes 6 channels, x [2, 6, 8, 8] has 6 in 2 groups"},
    {"ConvolutionWithoutGroups",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 6, 8, 8}), In(g, {4, 6, 3, 3}), ValueId{}, {.groups = 0});
     },
     "there must be at least 1 group"},
    {"ConvolutionDilation",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 3, 3}), ValueId{}, {.dilation = {1, 0}});
     },
     "dilations must be at least 1"},
    {"ConvolutionDilatedTooFar",
     [](Graph& g) {
       Conv2d(g, In(g, {2, 1, 4, 4}), In(g, {6, 1, 3, 3}), ValueId{},
              {.dilation = {1, int64_t{1} << 62}});
     },
     "the kernel is larger than the padded image; inputs: f32[2, 1, 4, 4], f32[6, 1, 3, 3]"},
    {"AdaptivePoolToNothing",
     [](Graph& g) {
       AdaptiveAvgPool2d(g, In(g, {1, 1, 4, 4}), {0, 1}, "pool");
     },
     "pool (adaptive_avg_pool2d): the result would be f32[1, 1, 0, 1]: every extent must be at"},
    {"AdaptiveMaximaOfNothing",
     [](Graph& g) {
       AdaptiveMaxPool2d(g, In(g, {1, 1, 4, 4}), {1, 0}, "pool");
     },
     "pool (adaptive_max_pool2d): the result would be f32[1, 1, 1, 0]: every extent must be at"},
    {"AdaptivePoolAxes",
     [](Graph& g) {
       AdaptiveAvgPool2d(g, In(g, {1, 4, 4}), {1, 1});
     },
     "x must have 4 axes, got [1, 4, 4]"},
    {"ConcatShapes",
     [](Graph& g) {
       const ValueId inputs[] = {In(g, {2, 3, 4}), In(g, {2, 5, 3})};
       Concat(g, inputs, 1, "join");
     },
     "join (concat): input 1 is f32[2, 5, 3], which differs from f32[2, 3, 4] beside axis 1"},
    {"ConcatTypes",
     [](Graph& g) {
       const ValueId inputs[] = {In(g, {2}), In(g, {2}, DType::kI32)};
       Concat(g, inputs, 0);
     },
     "input 1 is i32[2], which differs from f32[2] beside axis 0"},
    {"ConcatAxis",
     [](Graph& g) {
       const ValueId inputs[] = {In(g, {2})};
       Concat(g, inputs, 1);
     },
     "axis 1 is none of [2]'s"},
    {"SliceOutside",
     [](Graph& g) {
       const int64_t begin[] = {0, 3};
       Slice(g, In(g, {2, 5}), begin, {2, 3}, "cut");
     },
     "cut (slice): 3 places from 3 on do not lie in axis 1; inputs: f32[2, 5]"},
    {"SliceAxes",
     [](Graph& g) {
       const int64_t begin[] = {0};
       Slice(g, In(g, {2, 5}), begin, {2, 3});
     },
     "begin and size must have an extent for each axis of the input"},
    {"PadNegative",
     [](Graph& g) {
       const int64_t before[] = {0, -1}, after[] = {0, 0};
       Pad(g, In(g, {2, 5}), before, after);
     },
     "padding must lie in 0 to 1099511627776, got [0, -1] and [0, 0]"},
    {"PadAxes",
     [](Graph& g) {
       const int64_t one[] = {1};
       Pad(g, In(g, {2, 5}), one, one, "frame");
     },
     "frame (pad): before and after must have an extent for each axis of the input"},
    {"PoolPadding",
     [](Graph& g) {
       MaxPool2d(g, In(g, {1, 1, 4, 4}), {2, 2}, {{2, 2}, {2, 2}});
     },
     "the padding must be less than the window"},
    {"PoolTooLarge",
     [](Graph& g) {
       AvgPool2d(g, In(g, {1, 1, 4, 4}), {5, 5}, {});
     },
     "the window is larger than the padded image"},
    {"LinearFeatures",
     [](Graph& g) {
       Linear(g, In(g, {2, 7}), In(g, {3, 8}), ValueId{}, "fc");
     },
     "fc (linear): weight [3, 8] takes 8 features, x is [2, 7]"},
    {"LinearBias",
     [](Graph& g) {
       Linear(g, In(g, {2, 8}), In(g, {3, 8}), In(g, {2}), "fc");
     },
     "fc (linear): bias must be [3], got [2]"},
    {"MatMulOfAScalar",
     [](Graph& g) {
       MatMul(g, In(g, {}), In(g, {2, 2}), false, false, "product");
     },
     "product (matmul): both operands need at least one axis"},
    {"MatMulExtents",
     [](Graph& g) {
       MatMul(g, In(g, {2, 3}), In(g, {4, 5}));
     },
     "cannot multiply [2, 3] by [4, 5]"},
    {"BatchMatMulAxes",
     [](Graph& g) {
       BatchMatMul(g, In(g, {2, 3, 4}), In(g, {4, 5}));
     },
     "both operands need as many axes, two of them a matrix's"},
    {"AddShapes",
     [](Graph& g) {
       Add(g, In(g, {2, 3}), In(g, {2}));
     },
     "the shapes do not broadcast together; inputs: f32[2, 3], f32[2]"},
    {"AddTypes", [](Graph& g) { Add(g, In(g, {2}), In(g, {2}, DType::kF64)); },
     "input 1 must be f32 or f64, and like input 0"},
    {"StorageOnlyType", [](Graph& g) { Relu(g, In(g, {2}, DType::kBF16), "act"); },
     "act (relu): input 0 must be f32 or f64, and like input 0; inputs: bf16[2]"},
    {"SumToShape",
     [](Graph& g) {
       SumTo(g, In(g, {2, 3}), {2});
     },
     "[2] does not broadcast to the input"},
    {"DivideShapes",
     [](Graph& g) {
       Divide(g, In(g, {2, 3}), In(g, {2}), "share");
     },
     "share (divide): the shapes do not broadcast together; inputs: f32[2, 3], f32[2]"},
    {"MaxOverAxis",
     [](Graph& g) {
       const int64_t axes[] = {2};
       MaxOver(g, In(g, {2, 3}), axes, "peak");
     },
     "peak (max_over): there is no axis 2 in [2, 3]"},
    {"MeanOverAxisTwice",
     [](Graph& g) {
       const int64_t axes[] = {1, -1};
       MeanOver(g, In(g, {2, 3}), axes, "centre");
     },
     "centre: axes [1, -1] name one of [2, 3] twice"},
    {"OneHotClasses", [](Graph& g) { OneHot(g, In(g, {2}, DType::kI32), 0); },
     "at least 1 class is needed, got 0"},
    {"ReshapeElements",
     [](Graph& g) {
       Reshape(g, In(g, {2, 3}), {7});
     },
     "[7] has another number of elements"},
    {"FlattenScalar", [](Graph& g) { Flatten(g, In(g, {})); }, "a scalar has no batch axis"},
    {"DropoutRate", [](Graph& g) { Dropout(g, In(g, {2}), 1.0); },
     "rate must lie in [0, 1), got 1"},
    {"BatchNormGamma",
     [](Graph& g) {
       BatchNorm(g, In(g, {2, 3}), In(g, {2}), In(g, {3}), 1e-5);
     },
     "gamma must be [3], got [2]"},
    {"BatchNormAxes",
     [](Graph& g) {
       BatchNorm(g, In(g, {2, 3, 4}), In(g, {3}), In(g, {3}), 1e-5);
     },
     "x must be [N, C] or [N, C, H, W]"},
    {"SynchronisedNormGamma",
     [](Graph& g) {
       SynchronisedBatchNorm(g, In(g, {2, 3}), In(g, {2}), In(g, {3}), 1e-5, "norm");
     },
     "norm (batch_norm_synchronised): gamma must be [3], got [2]"},
    {"SynchronisedNormAxes",
     [](Graph& g) {
       SynchronisedBatchNorm(g, In(g, {2, 3, 4}), In(g, {3}), In(g, {3}), 1e-5, "norm");
     },
     "norm/moments (batch_moments): x must be [N, C] or [N, C, H, W]"},
    {"NormByStatisticsOfOtherChannels",
     [](Graph& g) {
       BatchNormInference(g, In(g, {2, 3}), In(g, {3}), In(g, {3}), In(g, {4}), In(g, {3}), 1e-5);
     },
     "mean must be [3], got [4]"},
    {"LayerNormGamma",
     [](Graph& g) {
       LayerNorm(g, In(g, {2, 3}), In(g, {2}), In(g, {3}), 1e-5, "ln");
     },
     "ln (layer_norm): gamma must be [3], got [2]"},
    {"LayerNormEpsilon",
     [](Graph& g) {
       LayerNorm(g, In(g, {2, 3}), In(g, {3}), In(g, {3}), 0.0);
     },
     "epsilon must be positive"},
    {"EmbeddingIndices",
     [](Graph& g) {
       Embedding(g, In(g, {5, 3}), In(g, {2}));
     },
     "indices must be i32, got f32"},
    {"AttentionHeads",
     [](Graph& g) {
       CausalAttention(g, In(g, {2, 3, 12}), 3);
     },
     "the last axis, 12, must be 3 times a multiple of heads, 3"},
    {"EmbeddingTableAxes",
     [](Graph& g) { Embedding(g, In(g, {5}), In(g, {2}, DType::kI32), "words"); },
     "words (embedding): table must have 2 axes, got [5]"},
    {"AttentionAxes",
     [](Graph& g) {
       CausalAttention(g, In(g, {3, 12}), 2, "heads");
     },
     "heads (causal_attention): qkv must have 3 axes, got [3, 12]"},
    {"SoftmaxOfAScalar", [](Graph& g) { Softmax(g, In(g, {}), "share"); },
     "share (softmax): x needs an axis of classes"},
    {"LogSoftmaxOfAScalar", [](Graph& g) { LogSoftmax(g, In(g, {})); },
     "x needs an axis of classes"},
    {"MeanSquareOfAScalar", [](Graph& g) { MeanSquare(g, In(g, {}), In(g, {}, DType::kI32)); },
     "mean square: scores need an axis of classes"},
    {"LossSmoothing",
     [](Graph& g) {
       SoftmaxCrossEntropy(g, In(g, {4, 10}), In(g, {4}, DType::kI32), 1.0);
     },
     "smoothing must lie in [0, 1), got 1"},
    {"BinaryLossLabels",
     [](Graph& g) {
       BinaryCrossEntropy(g, In(g, {4, 14}), In(g, {4}, DType::kI32));
     },
     "labels must be [4, 14], got [4]"},
    {"NllLabels",
     [](Graph& g) {
       Nll(g, In(g, {4, 10}), In(g, {4}));
     },
     "labels must be i32, got f32"},
    {"SquaredErrorTarget",
     [](Graph& g) {
       SquaredError(g, In(g, {4}), In(g, {4, 1}));
     },
     "target must be [4], got [4, 1]"},
    {"LossLabels",
     [](Graph& g) {
       SoftmaxCrossEntropy(g, In(g, {4, 10}), In(g, {5}, DType::kI32));
     },
     "labels must be [4], got [5]"},
};

INSTANTIATE_TEST_SUITE_P(Mistakes, MistakeTest, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ringmaster::graph

#include "runtime/graph/conformance_cases.h"

namespace ringmaster::graph {
namespace {

constexpr Conv2dOptions kSame3{{1, 1}, {1, 1}};
constexpr PoolOptions kHalf{{2, 2}, {0, 0}};

// Two planes wide enough for blocked layouts, odd sizes, strides, no bias.
ValueId ConvPadded(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 3, 6, 5}), b.Var({4, 3, 3, 3}), b.Var({4}), kSame3);
}
ValueId ConvStrided(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({3, 2, 7, 8}), b.Var({5, 2, 3, 2}), b.Var({5}), {{2, 3}, {1, 0}});
}
ValueId ConvWide(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 16, 8, 8}), b.Var({32, 16, 3, 3}), b.Var({32}), kSame3);
}
ValueId ConvFirstLayer(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({4, 1, 8, 8}), b.Var({6, 1, 5, 5}), b.Var({6}), {{1, 1}, {2, 2}});
}
ValueId ConvWithoutBias(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({1, 2, 4, 4}), b.Var({3, 2, 1, 1}), ValueId{});
}
ValueId ConvDilated(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 3, 8, 9}), b.Var({4, 3, 3, 2}), b.Var({4}),
                {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}});
}
// Windows whose outer taps all lie in the padding.
ValueId ConvDilatedPastTheImage(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({1, 2, 3, 3}), b.Var({2, 2, 3, 3}), ValueId{},
                {.padding = {4, 5}, .dilation = {4, 5}});
}
ValueId ConvGrouped(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 6, 5, 5}), b.Var({4, 3, 3, 3}), b.Var({4}),
                {.padding = {1, 1}, .groups = 2});
}
ValueId ConvGroupedWide(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 32, 6, 6}), b.Var({32, 8, 3, 3}), b.Var({32}),
                {.stride = {2, 2}, .padding = {1, 1}, .groups = 4});
}
ValueId ConvDepthwise(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 16, 6, 7}), b.Var({16, 1, 3, 3}), b.Var({16}),
                {.padding = {1, 1}, .groups = 16});
}
ValueId ConvDepthwiseMultiplied(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 3, 5, 5}), b.Var({6, 1, 3, 3}), ValueId{},
                {.stride = {2, 2}, .padding = {2, 2}, .dilation = {2, 2}, .groups = 3});
}

ValueId LinearPlain(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({5, 7}), b.Var({3, 7}), b.Var({3}));
}
ValueId LinearOfSequences(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({2, 4, 6}), b.Var({8, 6}), b.Var({8}));
}
ValueId LinearWithoutBias(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({33, 70}), b.Var({65, 70}), ValueId{});
}
// Whole tiles and what is left of them, in both directions.
ValueId LinearWide(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({50, 30}), b.Var({40, 30}), b.Var({40}));
}
ValueId MatMulWideA(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({19, 40}), b.Var({19, 33}), true, false);
}
ValueId MatMulPlain(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({4, 5}), b.Var({5, 3}));
}
ValueId MatMulOfSequences(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({2, 3, 5}), b.Var({5, 4}));
}
ValueId MatMulA(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({2, 3, 4}), b.Var({6, 5}), true, false);
}
ValueId MatMulB(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({4, 5}), b.Var({3, 5}), false, true);
}
ValueId MatMulBoth(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({5, 4}), b.Var({3, 5}), true, true);
}

ValueId BatchMatMulPlain(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({2, 3, 4, 5}), b.Var({2, 3, 5, 6}));
}
ValueId BatchMatMulOne(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({4, 5}), b.Var({5, 3}));
}
ValueId BatchMatMulA(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 5, 4}), b.Var({3, 5, 6}), true, false);
}
ValueId BatchMatMulB(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 4, 5}), b.Var({3, 6, 5}), false, true);
}
ValueId BatchMatMulBoth(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 5, 4}), b.Var({3, 6, 5}), true, true);
}

ValueId MaxPoolEven(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({2, 3, 4, 6}), {2, 2}, kHalf);
}
ValueId MaxPoolWide(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({2, 2, 4, 38}), {2, 2}, kHalf);
}
// Nine rows of four windows.
ValueId MaxPoolRowsOfFour(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({3, 1, 6, 8}), {2, 2}, kHalf);
}
ValueId MaxPoolOverlapping(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({1, 2, 5, 5}), {3, 3}, {{2, 2}, {1, 1}});
}
// Rows of outputs with whole vectors, what is left of them, and windows that leave the image.
ValueId MaxPoolOverlappingWide(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({1, 2, 8, 41}), {3, 3}, {{2, 2}, {1, 1}});
}
// Rows of twelve windows, of which eight are taken at once; nine of them.
ValueId MaxPoolRowsOfTwelve(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({3, 1, 6, 24}), {2, 2}, kHalf);
}
ValueId MaxPoolOfRelu(CaseBuilder& b) {
  return MaxPool2d(b.graph(), Relu(b.graph(), b.Distinct({2, 2, 7, 9})), {3, 3}, {{2, 2}, {1, 1}});
}
ValueId MaxPoolOfConvolution(CaseBuilder& b) {
  Graph& g = b.graph();
  return MaxPool2d(g, Conv2d(g, b.Var({2, 3, 6, 6}), b.Var({4, 3, 3, 3}), b.Var({4}), kSame3),
                   {2, 2}, kHalf);
}
ValueId AvgPoolEven(CaseBuilder& b) {
  return AvgPool2d(b.graph(), b.Var({2, 3, 4, 6}), {2, 2}, kHalf);
}
ValueId AvgPoolPadded(CaseBuilder& b) {
  return AvgPool2d(b.graph(), b.Var({1, 2, 5, 4}), {3, 2}, {{2, 1}, {1, 1}});
}
ValueId AvgPoolPaddingNotCounted(CaseBuilder& b) {
  return AvgPool2d(b.graph(), b.Var({2, 2, 5, 4}), {3, 3}, {{2, 2}, {1, 1}, false});
}
ValueId AdaptivePoolEven(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({2, 3, 6, 4}), {3, 2});
}
ValueId AdaptivePoolUneven(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({2, 3, 7, 5}), {3, 2});
}
ValueId AdaptivePoolLarger(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({1, 2, 2, 3}), {5, 4});
}
ValueId GlobalPool(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({2, 9, 7, 7}), {1, 1});
}

ValueId ReluCase(CaseBuilder& b) {
  return Relu(b.graph(), b.Var({5, 9}));
}
ValueId GeluCase(CaseBuilder& b) {
  return Gelu(b.graph(), b.Var({5, 9}));
}
ValueId ExactGeluCase(CaseBuilder& b) {
  return ExactGelu(b.graph(), b.Var({5, 9}));
}
ValueId TanhCase(CaseBuilder& b) {
  return Tanh(b.graph(), b.Var({5, 9}));
}
ValueId SigmoidCase(CaseBuilder& b) {
  return Sigmoid(b.graph(), b.Var({5, 9}));
}
ValueId SiluCase(CaseBuilder& b) {
  return Silu(b.graph(), b.Var({5, 9}));
}
ValueId MultiplySame(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId MultiplyRow(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 5}), b.Var({5}));
}
ValueId MultiplyColumn(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 5}), b.Var({4, 1}));
}
ValueId SubtractSame(CaseBuilder& b) {
  return Subtract(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId SubtractColumn(CaseBuilder& b) {
  return Subtract(b.graph(), b.Var({3, 4, 5}), b.Var({4, 1}));
}
ValueId DivideSame(CaseBuilder& b) {
  return Divide(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId DivideRow(CaseBuilder& b) {
  return Divide(b.graph(), b.Var({3, 4, 5}), b.Var({5}));
}
ValueId MultiplyItself(CaseBuilder& b) {
  const ValueId x = b.Var({4, 7});
  return Multiply(b.graph(), x, x);
}
ValueId TransposePair(CaseBuilder& b) {
  const int64_t axes[] = {1, 0};
  return Transpose(b.graph(), b.Var({37, 21}), axes);
}
ValueId TransposeHeads(CaseBuilder& b) {
  const int64_t axes[] = {0, 2, 1, 3};
  return Transpose(b.graph(), b.Var({2, 5, 3, 4}), axes);
}
ValueId TransposeAround(CaseBuilder& b) {
  const int64_t axes[] = {2, 0, 1};
  return Transpose(b.graph(), b.Var({3, 4, 5}), axes);
}
ValueId ScaleCase(CaseBuilder& b) {
  return Scale(b.graph(), b.Var({5, 9}), -1.75);
}
ValueId DropoutCase(CaseBuilder& b) {
  return Dropout(b.graph(), b.Var({kCaseSamples, 3, 7}), 0.4);
}
// More than one draw of eight blocks, and a last one that is not whole.
ValueId DropoutWide(CaseBuilder& b) {
  return Dropout(b.graph(), b.Var({kCaseSamples, 5, 15}), 0.25);
}

ValueId AddSame(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 4}), b.Var({3, 4}));
}
ValueId AddRow(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4}), b.Var({2, 4}));
}
ValueId AddColumn(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4}), b.Var({3, 1, 1}));
}
ValueId AddMiddle(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4, 5}), b.Var({2, 1, 5}));
}
ValueId AddScalar(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 4}), b.Var({}));
}
ValueId AddItself(CaseBuilder& b) {
  const ValueId x = b.Var({3, 4});
  return Add(b.graph(), x, x);
}
ValueId SumToRow(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({9, 130}), {130});
}
ValueId SumToChannels(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({3, 4, 5, 2}), {4, 1, 1});
}
ValueId SumToFirst(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({4, 3, 19}), {4, 1, 1});
}
ValueId SumToAlternating(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({3, 4, 5, 2}), {3, 1, 5, 1});
}
ValueId SumAllCase(CaseBuilder& b) {
  return SumAll(b.graph(), b.Var({6, 11}));
}
ValueId MeanOverRows(CaseBuilder& b) {
  const int64_t axes[] = {-1};
  return MeanOver(b.graph(), b.Var({3, 4, 9}), axes);
}
ValueId MeanOverImages(CaseBuilder& b) {
  const int64_t axes[] = {0, 2, 3};
  return MeanOver(b.graph(), b.Var({2, 3, 4, 5}), axes);
}
ValueId MaxOverRows(CaseBuilder& b) {
  const int64_t axes[] = {-1};
  return MaxOver(b.graph(), b.Distinct({3, 4, 19}), axes);
}
ValueId MaxOverMiddle(CaseBuilder& b) {
  const int64_t axes[] = {1, 2};
  return MaxOver(b.graph(), b.Distinct({2, 3, 4, 11}), axes);
}
ValueId MaxOverAlternating(CaseBuilder& b) {
  const int64_t axes[] = {0, 2};
  return MaxOver(b.graph(), b.Distinct({3, 4, 5, 2}), axes);
}
ValueId MaxOverAll(CaseBuilder& b) {
  const int64_t axes[] = {0, 1};
  return MaxOver(b.graph(), b.Distinct({3, 7}), axes);
}
ValueId ReshapeCase(CaseBuilder& b) {
  return Reshape(b.graph(), Tanh(b.graph(), b.Var({6, 4})), {2, 3, 4});
}
ValueId FlattenCase(CaseBuilder& b) {
  return Flatten(b.graph(), Relu(b.graph(), b.Var({2, 3, 2, 2})));
}

ValueId ConcatChannels(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({2, 3, 2, 2}), b.Var({2, 1, 2, 2}), b.Var({2, 4, 2, 2})};
  return Concat(b.graph(), inputs, 1);
}
ValueId ConcatLast(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({3, 2}), b.Fixed({3, 5})};
  return Concat(b.graph(), inputs, 1);
}
ValueId ConcatFirst(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({3, 2, 2}), b.Var({1, 2, 2})};
  return Concat(b.graph(), inputs, 0);
}
ValueId ConcatItself(CaseBuilder& b) {
  const ValueId x = b.Var({2, 3});
  const ValueId inputs[] = {x, x};
  return Concat(b.graph(), inputs, 0);
}
ValueId SliceInner(CaseBuilder& b) {
  const int64_t begin[] = {1, 0, 2};
  return Slice(b.graph(), b.Var({3, 4, 5}), begin, {2, 4, 3});
}
ValueId SliceMiddle(CaseBuilder& b) {
  const int64_t begin[] = {0, 2, 0, 0};
  return Slice(b.graph(), b.Var({2, 5, 3, 2}), begin, {2, 2, 3, 2});
}
ValueId SliceEverywhere(CaseBuilder& b) {
  const int64_t begin[] = {1, 1, 1, 1};
  return Slice(b.graph(), b.Var({3, 4, 5, 4}), begin, {1, 2, 3, 2});
}
ValueId PadImages(CaseBuilder& b) {
  const int64_t before[] = {0, 0, 1, 2}, after[] = {0, 0, 3, 0};
  return Pad(b.graph(), b.Var({2, 3, 2, 3}), before, after);
}
ValueId PadFirst(CaseBuilder& b) {
  const int64_t before[] = {2, 0}, after[] = {1, 0};
  return Pad(b.graph(), b.Var({2, 3}), before, after);
}

// Nodes of which the passes leave one.
ValueId NothingButATurn(CaseBuilder& b) {
  Graph& g = b.graph();
  const int64_t turn[] = {1, 2, 0}, zeros[] = {0, 0, 0};
  ValueId x = Dropout(g, Scale(g, b.Var({6, 3, 4}), 1.0), 0.0);
  x = Transpose(g, Transpose(g, Transpose(g, x, turn), turn), turn);
  x = Pad(g, Slice(g, Reshape(g, Flatten(g, x), {6, 4, 3}), zeros, {6, 4, 3}), zeros, zeros);
  const ValueId ones = Scale(g, Constant(g, 0.5, {{3}, b.dtype()}), 2.0);
  return Transpose(g, Multiply(g, Concat(g, {&x, 1}, 2), ones), turn);
}

ValueId BatchNormImages(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({4, 3, 2, 3}), b.Var({3}), b.Var({3}), 1e-5).y;
}
ValueId BatchNormWideImages(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({3, 2, 5, 7}), b.Var({2}), b.Var({2}), 1e-5).y;
}
ValueId BatchNormFeatures(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({8, 5}), b.Var({5}), b.Var({5}), 1e-3).y;
}
// As Recompute makes it. It has no gradient, so it is seen through a factor that has one.
ValueId NormAgain(CaseBuilder& b, const Shape& shape, bool plus) {
  const Shape channels({shape.dim(1)});
  std::vector<ValueId> inputs = {b.Fixed(shape), b.Fixed(channels), b.Fixed(channels),
                                 b.Fixed(channels), b.Positive(channels)};
  if (plus) inputs.push_back(b.Fixed(shape));
  const auto again = b.graph().Add("batch_norm_again", {{"epsilon", 1e-5}, {"relu", int64_t{1}}},
                                   inputs, 1, "again");
  return Multiply(b.graph(), b.Var(shape), again[0]);
}
ValueId BatchNormAgain(CaseBuilder& b) {
  return NormAgain(b, {4, 3, 3, 5}, false);
}
ValueId BatchNormPlusAgain(CaseBuilder& b) {
  return NormAgain(b, {3, 2, 4, 4}, true);
}
// As FuseResidualGrad makes it, seen in the same way. dx and daddend, of one shape, are summed.
ValueId NormAddReluGrad(CaseBuilder& b, bool second) {
  const Shape shape{4, 3, 3, 5}, channels{3};
  std::vector<ValueId> inputs = {b.Fixed(shape),       b.Fixed(channels), b.Fixed(channels),
                                 b.Positive(channels), b.Fixed(shape),    b.Fixed(shape)};
  if (second) inputs.push_back(b.Fixed(shape));
  Graph& g = b.graph();
  const auto made = g.Add("batch_norm_add_relu_grad", {{"epsilon", 1e-5}}, inputs, 4, "grad");
  return Multiply(g, b.Var(shape), Add(g, made[0], made[3]));
}
ValueId BatchNormAddReluGrad(CaseBuilder& b) {
  return NormAddReluGrad(b, false);
}
ValueId BatchNormAddReluGradOfTwo(CaseBuilder& b) {
  return NormAddReluGrad(b, true);
}
ValueId BatchNormInferenceCase(CaseBuilder& b) {
  return BatchNormInference(b.graph(), b.Var({4, 3, 2, 3}), b.Var({3}), b.Var({3}), b.Fixed({3}),
                            b.Positive({3}), 1e-5);
}
ValueId BatchNormInferenceThenRelu(CaseBuilder& b) {
  const ValueId y = BatchNormInference(b.graph(), b.Var({4, 3, 3, 5}), b.Var({3}), b.Var({3}),
                                       b.Fixed({3}), b.Positive({3}), 1e-5);
  return Relu(b.graph(), Add(b.graph(), y, b.Var({4, 3, 3, 5})));
}
ValueId LayerNormRows(CaseBuilder& b) {
  return LayerNorm(b.graph(), b.Var({6, 9}), b.Var({9}), b.Var({9}), 1e-5);
}
ValueId LayerNormSequences(CaseBuilder& b) {
  return LayerNorm(b.graph(), b.Var({2, 3, 70}), b.Var({70}), b.Var({70}), 1e-5);
}

ValueId LayerNormManyRows(CaseBuilder& b) {
  return LayerNorm(b.graph(), b.Var({5, 14, 37}), b.Var({37}), b.Var({37}), 1e-5);
}

ValueId EmbeddingCase(CaseBuilder& b) {
  return Embedding(b.graph(), b.Var({7, 5}), b.Indices({3, 6}, 7));
}
ValueId AttentionOneHead(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 5, 12}), 1);
}
ValueId AttentionHeads(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 6, 36}), 3);
}

// Several blocks of queries, the last not whole, and heads that are no whole tiles.
ValueId AttentionLong(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({2, 101, 108}), 2);
}
ValueId AttentionWideHeads(CaseBuilder& b) {
  return CausalAttention(b.graph(), b.Var({1, 50, 192}), 1);
}

ValueId LossOfClasses(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10)).loss;
}
ValueId LossOfSequences(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({2, 5, 7}), b.Indices({2, 5}, 7)).loss;
}
// Eight rows at once, eight classes at once, and what is left of both.
ValueId LossOfManyRows(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({17, 19}), b.Indices({17}, 19), 0.1).loss;
}
ValueId LossOfManyClasses(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({5, 1003}), b.Indices({5}, 1003), 0.1).loss;
}
ValueId LossSmoothed(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10), 0.1).loss;
}
ValueId LossOfManyLabels(CaseBuilder& b) {
  return BinaryCrossEntropy(b.graph(), b.Var({5, 14}), b.Indices({5, 14}, 2)).loss;
}
ValueId SoftmaxCase(CaseBuilder& b) {
  return Softmax(b.graph(), b.Var({4, 3, 7}));
}
ValueId SoftmaxWide(CaseBuilder& b) {
  return Softmax(b.graph(), b.Var({3, 130}));
}
ValueId LogSoftmaxCase(CaseBuilder& b) {
  return LogSoftmax(b.graph(), b.Var({4, 3, 7}));
}
ValueId NllCase(CaseBuilder& b) {
  return Nll(b.graph(), b.Var({4, 3, 7}), b.Indices({4, 3}, 7)).loss;
}
ValueId SquaredErrorCase(CaseBuilder& b) {
  return SquaredError(b.graph(), b.Var({4, 9}), b.Var({4, 9}));
}

ValueId MeanSquareCase(CaseBuilder& b) {
  return MeanSquare(b.graph(), b.Var({4, 3, 7}), b.Indices({4, 3}, 7)).loss;
}

ValueId SmallConvolutionNetwork(CaseBuilder& b) {
  Graph& g = b.graph();
  ValueId h = Conv2d(g, b.Var({kCaseSamples, 1, 8, 8}), b.Var({4, 1, 3, 3}), b.Var({4}), kSame3);
  h = Tanh(g, BatchNorm(g, h, b.Var({4}), b.Var({4}), 1e-5).y);
  h = Dropout(g, Flatten(g, AvgPool2d(g, h, {2, 2}, kHalf)), 0.25);
  return SoftmaxCrossEntropy(g, Linear(g, h, b.Var({10, 64}), b.Var({10})),
                             b.Indices({kCaseSamples}, 10))
      .loss;
}

ValueId NormOf(CaseBuilder& b, ValueId x) {
  const int64_t channels = b.graph().shape(x).dim(1);
  return BatchNorm(b.graph(), x, b.Var({channels}), b.Var({channels}), 1e-5).y;
}
ValueId SynchronisedNormOf(CaseBuilder& b, ValueId x) {
  const int64_t channels = b.graph().shape(x).dim(1);
  return SynchronisedBatchNorm(b.graph(), x, b.Var({channels}), b.Var({channels}), 1e-5).y;
}
// Alone, so that the shard is the whole batch. Few pixels; single ones; vectors of them.
ValueId SynchronisedNormOfFewPixels(CaseBuilder& b) {
  return SynchronisedNormOf(b, b.Var({4, 3, 2, 3}));
}
ValueId SynchronisedNormOfFeatures(CaseBuilder& b) {
  return SynchronisedNormOf(b, b.Var({8, 5}));
}
ValueId SynchronisedNormThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), SynchronisedNormOf(b, b.Var({4, 3, 3, 5})));
}
ValueId SynchronisedNormPlusThenRelu(CaseBuilder& b) {
  const ValueId x = b.Var({4, 3, 3, 5});
  return Relu(b.graph(), Add(b.graph(), b.Var({4, 3, 3, 5}), SynchronisedNormOf(b, x)));
}
ValueId BatchNormThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), NormOf(b, b.Var({4, 3, 3, 5})));
}
ValueId BatchNormOfFewPixelsThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), NormOf(b, b.Var({7, 3})));
}
ValueId BatchNormPlusThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), Add(b.graph(), b.Var({4, 3, 3, 5}), NormOf(b, b.Var({4, 3, 3, 5}))));
}
// Few channels; many, with a gradient that comes in the same blocks; groups; no bias.
ValueId ConvThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), ConvPadded(b));
}
ValueId ConvWideThenRelu(CaseBuilder& b) {
  const ValueId y = Relu(b.graph(), ConvWide(b));
  return MaxPool2d(b.graph(), y, {2, 2}, kHalf);
}
ValueId ConvGroupedThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), ConvGrouped(b));
}
ValueId ConvWithoutBiasThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), ConvWithoutBias(b));
}
ValueId LinearThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearPlain(b));
}
ValueId LinearWideThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearWide(b));
}
ValueId LinearWithoutBiasThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearWithoutBias(b));
}
ValueId LinearThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearPlain(b));
}
ValueId LinearWideThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearWide(b));
}
ValueId LinearWithoutBiasThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearWithoutBias(b));
}
// As in a ResNet: whatever follows the first convolution may stay in blocks to the pooling.
ValueId ResidualBlockWith(CaseBuilder& b, ValueId (*norm_of)(CaseBuilder& b, ValueId x)) {
  Graph& g = b.graph();
  const ValueId stem = Relu(
      g, norm_of(b, Conv2d(g, b.Var({1, 64, 4, 4}), b.Var({16, 64, 3, 3}), ValueId{}, kSame3)));
  const ValueId x = MaxPool2d(g, stem, {3, 3}, {{2, 2}, {1, 1}});
  ValueId y = Relu(g, norm_of(b, Conv2d(g, x, b.Var({64, 16, 3, 3}), ValueId{}, kSame3)));
  y = norm_of(b, Conv2d(g, y, b.Var({16, 64, 3, 3}), ValueId{}, kSame3));
  return AdaptiveAvgPool2d(g, Relu(g, Add(g, y, x)), {1, 1});
}
ValueId ResidualBlock(CaseBuilder& b) {
  return ResidualBlockWith(b, NormOf);
}
// Whose result two nodes read.
ValueId ResidualBlockReadTwice(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x = Conv2d(g, b.Var({1, 64, 4, 2}), b.Var({64, 64, 3, 3}), ValueId{}, kSame3);
  const ValueId y = Conv2d(g, x, b.Var({64, 64, 3, 3}), ValueId{}, kSame3);
  const ValueId sum = Relu(g, Add(g, NormOf(b, y), x));
  return Add(g, MaxPool2d(g, sum, {2, 2}, kHalf), AvgPool2d(g, sum, {2, 2}, kHalf));
}
ValueId SynchronisedResidualBlock(CaseBuilder& b) {
  return ResidualBlockWith(b, SynchronisedNormOf);
}
// As in a DenseNet: parts side by side, of which later layers see all. Windows of more than 512
// elements are no kernel's of ours, so that the library's convolutions ask for blocks.
ValueId DenseBlock(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x =
      Tanh(g, Conv2d(g, b.Var({1, 3, 3, 3}), b.Var({64, 3, 3, 3}), b.Var({64}), kSame3));
  const ValueId grown = Conv2d(g, NormOf(b, x), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  const ValueId both[] = {x, grown};
  const ValueId joined = NormOf(b, Concat(g, both, 1));
  const ValueId y = Conv2d(g, joined, b.Var({16, 80, 3, 3}), b.Var({16}), kSame3);
  return Scale(g, AvgPool2d(g, y, {2, 2}, {}), 1.5);
}
// Channels that fill no block, beside such that do.
ValueId OddChannels(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x = b.Var({1, 64, 3, 2});
  const ValueId odd = Conv2d(g, x, b.Var({20, 64, 3, 3}), ValueId{}, kSame3),
                even = Conv2d(g, x, b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  const ValueId both[] = {Relu(g, even), Relu(g, odd)};
  return Concat(g, both, 1);
}
// As above, where a part of what the last convolution sees ends within a block.
ValueId OddPartsOfBlocks(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId parts[] = {b.Var({2, 16, 3, 3}), b.Var({2, 4, 3, 3}), b.Var({2, 44, 3, 3})};
  return Conv2d(g, Relu(g, Concat(g, parts, 1)), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
}
// As many places as the kernels over tiles of images in blocks want.
ValueId ConvOverTiles(CaseBuilder& b) {
  Graph& g = b.graph();
  return Relu(g, Conv2d(g, b.Var({4, 64, 8, 7}), b.Var({16, 64, 3, 3}), ValueId{}, kSame3));
}

// Attention that sees everything, of two heads, made of its parts.
ValueId AttentionOfParts(CaseBuilder& b) {
  Graph& g = b.graph();
  const int64_t heads_first[] = {0, 2, 1, 3};
  const auto heads = [&](ValueId x) {
    return Transpose(g, Reshape(g, x, {2, 5, 2, 3}), heads_first);
  };
  const ValueId queries = heads(b.Var({2, 5, 6})), keys = heads(b.Var({2, 5, 6})),
                values = heads(b.Var({2, 5, 6}));
  const ValueId shares = Softmax(g, Scale(g, BatchMatMul(g, queries, keys, false, true), 0.5));
  return Transpose(g, BatchMatMul(g, shares, values), heads_first);
}
ValueId SmallTransformer(CaseBuilder& b) {
  Graph& g = b.graph();
  ValueId h = Add(g, Embedding(g, b.Var({11, 8}), b.Indices({kCaseSamples, 5}, 11)), b.Var({5, 8}));
  h = Dropout(g, h, 0.1);
  const ValueId a = LayerNorm(g, h, b.Var({8}), b.Var({8}), 1e-5);
  const ValueId attended = CausalAttention(g, Linear(g, a, b.Var({24, 8}), b.Var({24})), 2);
  h = Add(g, h, Linear(g, attended, b.Var({8, 8}), b.Var({8})));
  const ValueId m = LayerNorm(g, h, b.Var({8}), b.Var({8}), 1e-5);
  const ValueId hidden = Gelu(g, Linear(g, m, b.Var({16, 8}), b.Var({16})));
  h = Add(g, h, Linear(g, hidden, b.Var({8, 16}), b.Var({8})));
  return SoftmaxCrossEntropy(g, Linear(g, h, b.Var({11, 8}), ValueId{}),
                             b.Indices({kCaseSamples, 5}, 11))
      .loss;
}

}  // namespace

const std::vector<Case>& ConformanceCases() {
  static const std::vector<Case> cases = {
      {"Conv2dPadded", ConvPadded},
      {"Conv2dStrided", ConvStrided},
      {"Conv2dWide", ConvWide},
      {"Conv2dFirstLayer", ConvFirstLayer},
      {"Conv2dWithoutBias", ConvWithoutBias},
      {"Conv2dDilated", ConvDilated},
      {"Conv2dDilatedPastTheImage", ConvDilatedPastTheImage},
      {"Conv2dGrouped", ConvGrouped},
      {"Conv2dGroupedWide", ConvGroupedWide},
      {"Conv2dDepthwise", ConvDepthwise},
      {"Conv2dDepthwiseMultiplied", ConvDepthwiseMultiplied},
      {"Linear", LinearPlain},
      {"LinearOfSequences", LinearOfSequences},
      {"LinearWithoutBias", LinearWithoutBias},
      {"LinearWide", LinearWide},
      {"MatMul", MatMulPlain},
      {"MatMulWideTransposedA", MatMulWideA},
      {"MatMulOfSequences", MatMulOfSequences},
      {"MatMulTransposedA", MatMulA},
      {"MatMulTransposedB", MatMulB},
      {"MatMulTransposedBoth", MatMulBoth},
      {"BatchMatMul", BatchMatMulPlain},
      {"BatchMatMulOfOnePair", BatchMatMulOne},
      {"BatchMatMulTransposedA", BatchMatMulA},
      {"BatchMatMulTransposedB", BatchMatMulB},
      {"BatchMatMulTransposedBoth", BatchMatMulBoth},
      {"MaxPoolEven", MaxPoolEven},
      {"MaxPoolWide", MaxPoolWide},
      {"MaxPoolRowsOfFour", MaxPoolRowsOfFour},
      {"MaxPoolRowsOfTwelve", MaxPoolRowsOfTwelve},
      {"MaxPoolOfRelu", MaxPoolOfRelu},
      {"MaxPoolOfConvolution", MaxPoolOfConvolution},
      {"MaxPoolOverlapping", MaxPoolOverlapping},
      {"MaxPoolOverlappingWide", MaxPoolOverlappingWide},
      {"AvgPoolEven", AvgPoolEven},
      {"AvgPoolPadded", AvgPoolPadded},
      {"AvgPoolPaddingNotCounted", AvgPoolPaddingNotCounted},
      {"AdaptivePoolEven", AdaptivePoolEven},
      {"AdaptivePoolUneven", AdaptivePoolUneven},
      {"AdaptivePoolLarger", AdaptivePoolLarger},
      {"GlobalPool", GlobalPool},
      {"Relu", ReluCase},
      {"Gelu", GeluCase},
      {"ExactGelu", ExactGeluCase},
      {"Tanh", TanhCase},
      {"Sigmoid", SigmoidCase},
      {"Silu", SiluCase},
      {"MultiplySame", MultiplySame},
      {"MultiplyRow", MultiplyRow},
      {"MultiplyColumn", MultiplyColumn},
      {"SubtractSame", SubtractSame},
      {"SubtractColumn", SubtractColumn},
      {"DivideSame", DivideSame},
      {"DivideRow", DivideRow},
      {"MultiplyItself", MultiplyItself},
      {"TransposePair", TransposePair},
      {"TransposeHeads", TransposeHeads},
      {"TransposeAround", TransposeAround},
      {"Scale", ScaleCase},
      {"Dropout", DropoutCase},
      {"DropoutWide", DropoutWide},
      {"AddSame", AddSame},
      {"AddRow", AddRow},
      {"AddColumn", AddColumn},
      {"AddMiddle", AddMiddle},
      {"AddScalar", AddScalar},
      {"AddItself", AddItself},
      {"SumToRow", SumToRow},
      {"SumToChannels", SumToChannels},
      {"SumToFirst", SumToFirst},
      {"SumToAlternating", SumToAlternating},
      {"SumAll", SumAllCase},
      {"MeanOverRows", MeanOverRows},
      {"MeanOverImages", MeanOverImages},
      {"MaxOverRows", MaxOverRows},
      {"MaxOverMiddle", MaxOverMiddle},
      {"MaxOverAlternating", MaxOverAlternating},
      {"MaxOverAll", MaxOverAll},
      {"Reshape", ReshapeCase},
      {"Flatten", FlattenCase},
      {"ConcatChannels", ConcatChannels},
      {"ConcatLast", ConcatLast},
      {"ConcatFirst", ConcatFirst},
      {"ConcatItself", ConcatItself},
      {"SliceInner", SliceInner},
      {"SliceMiddle", SliceMiddle},
      {"SliceEverywhere", SliceEverywhere},
      {"PadImages", PadImages},
      {"PadFirst", PadFirst},
      {"NothingButATurn", NothingButATurn},
      {"BatchNormImages", BatchNormImages},
      {"BatchNormWideImages", BatchNormWideImages},
      {"BatchNormFeatures", BatchNormFeatures},
      {"BatchNormAgain", BatchNormAgain},
      {"BatchNormPlusAgain", BatchNormPlusAgain},
      {"BatchNormAddReluGrad", BatchNormAddReluGrad},
      {"BatchNormAddReluGradOfTwo", BatchNormAddReluGradOfTwo},
      {"BatchNormInference", BatchNormInferenceCase},
      {"BatchNormInferenceThenRelu", BatchNormInferenceThenRelu},
      {"LayerNormRows", LayerNormRows},
      {"LayerNormSequences", LayerNormSequences},
      {"LayerNormManyRows", LayerNormManyRows},
      {"Embedding", EmbeddingCase},
      {"AttentionOneHead", AttentionOneHead},
      {"AttentionHeads", AttentionHeads},
      {"AttentionLong", AttentionLong},
      {"AttentionWideHeads", AttentionWideHeads},
      {"LossOfClasses", LossOfClasses},
      {"LossOfSequences", LossOfSequences},
      {"LossOfManyRows", LossOfManyRows},
      {"LossOfManyClasses", LossOfManyClasses},
      {"LossSmoothed", LossSmoothed},
      {"LossOfManyLabels", LossOfManyLabels},
      {"Softmax", SoftmaxCase},
      {"SoftmaxWide", SoftmaxWide},
      {"LogSoftmax", LogSoftmaxCase},
      {"Nll", NllCase},
      {"SquaredError", SquaredErrorCase},
      {"MeanSquare", MeanSquareCase},
      {"SmallConvolutionNetwork", SmallConvolutionNetwork},
      {"SynchronisedNormOfFewPixels", SynchronisedNormOfFewPixels},
      {"SynchronisedNormOfFeatures", SynchronisedNormOfFeatures},
      {"SynchronisedNormThenRelu", SynchronisedNormThenRelu},
      {"SynchronisedNormPlusThenRelu", SynchronisedNormPlusThenRelu},
      {"BatchNormThenRelu", BatchNormThenRelu},
      {"BatchNormOfFewPixelsThenRelu", BatchNormOfFewPixelsThenRelu},
      {"BatchNormPlusThenRelu", BatchNormPlusThenRelu},
      {"ConvThenRelu", ConvThenRelu},
      {"ConvWideThenRelu", ConvWideThenRelu},
      {"ConvGroupedThenRelu", ConvGroupedThenRelu},
      {"ConvWithoutBiasThenRelu", ConvWithoutBiasThenRelu},
      {"LinearThenRelu", LinearThenRelu},
      {"LinearWideThenRelu", LinearWideThenRelu},
      {"LinearWithoutBiasThenRelu", LinearWithoutBiasThenRelu},
      {"LinearThenGelu", LinearThenGelu},
      {"LinearWideThenGelu", LinearWideThenGelu},
      {"LinearWithoutBiasThenGelu", LinearWithoutBiasThenGelu},
      {"ResidualBlock", ResidualBlock},
      {"ResidualBlockReadTwice", ResidualBlockReadTwice},
      {"SynchronisedResidualBlock", SynchronisedResidualBlock},
      {"DenseBlock", DenseBlock},
      {"OddChannels", OddChannels},
      {"OddPartsOfBlocks", OddPartsOfBlocks},
      {"ConvOverTiles", ConvOverTiles},
      {"AttentionOfParts", AttentionOfParts},
      {"SmallTransformer", SmallTransformer},
  };
  return cases;
}

}  // namespace ringmaster::graph

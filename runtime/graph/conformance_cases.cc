#include "runtime/graph/conformance_cases.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/tensor/random.h"

namespace ringmaster::graph {
namespace {

constexpr uint64_t kSeed = 20240229;
constexpr Conv2dOptions kSame3{{1, 1}, {1, 1}};
constexpr PoolOptions kHalf{{2, 2}, {0, 0}};

// In [-1, 1) without (-0.05, 0.05).
double AwayFromZero(tensor::RandomStream& stream) {
  const double v = 2.0 * static_cast<double>(tensor::ToUniform(stream.Next())) - 1.0;
  return std::copysign(0.05 + 0.95 * std::abs(v), v);
}

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

ValueId MaxPoolEven(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({2, 3, 4, 6}), {2, 2}, kHalf);
}
ValueId MaxPoolWide(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({2, 2, 4, 38}), {2, 2}, kHalf);
}
ValueId MaxPoolOverlapping(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({1, 2, 5, 5}), {3, 3}, {{2, 2}, {1, 1}});
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
ValueId TanhCase(CaseBuilder& b) {
  return Tanh(b.graph(), b.Var({5, 9}));
}
ValueId ScaleCase(CaseBuilder& b) {
  return Scale(b.graph(), b.Var({5, 9}), -1.75);
}
ValueId DropoutCase(CaseBuilder& b) {
  return Dropout(b.graph(), b.Var({kCaseSamples, 3, 7}), 0.4);
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
ValueId SumToAlternating(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({3, 4, 5, 2}), {3, 1, 5, 1});
}
ValueId SumAllCase(CaseBuilder& b) {
  return SumAll(b.graph(), b.Var({6, 11}));
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

ValueId BatchNormImages(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({4, 3, 2, 3}), b.Var({3}), b.Var({3}), 1e-5).y;
}
ValueId BatchNormWideImages(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({3, 2, 5, 7}), b.Var({2}), b.Var({2}), 1e-5).y;
}
ValueId BatchNormFeatures(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({8, 5}), b.Var({5}), b.Var({5}), 1e-3).y;
}
ValueId BatchNormInferenceCase(CaseBuilder& b) {
  return BatchNormInference(b.graph(), b.Var({4, 3, 2, 3}), b.Var({3}), b.Var({3}), b.Fixed({3}),
                            b.Positive({3}), 1e-5);
}
ValueId LayerNormRows(CaseBuilder& b) {
  return LayerNorm(b.graph(), b.Var({6, 9}), b.Var({9}), b.Var({9}), 1e-5);
}
ValueId LayerNormSequences(CaseBuilder& b) {
  return LayerNorm(b.graph(), b.Var({2, 3, 70}), b.Var({70}), b.Var({70}), 1e-5);
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

ValueId LossOfClasses(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10)).loss;
}
ValueId LossOfSequences(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({2, 5, 7}), b.Indices({2, 5}, 7)).loss;
}
ValueId LossSmoothed(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10), 0.1).loss;
}
ValueId LossOfManyLabels(CaseBuilder& b) {
  return BinaryCrossEntropy(b.graph(), b.Var({5, 14}), b.Indices({5, 14}, 2)).loss;
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

ValueId SmallConvolutionNetwork(CaseBuilder& b) {
  Graph& g = b.graph();
  ValueId h = Conv2d(g, b.Var({kCaseSamples, 1, 8, 8}), b.Var({4, 1, 3, 3}), b.Var({4}), kSame3);
  h = Tanh(g, BatchNorm(g, h, b.Var({4}), b.Var({4}), 1e-5).y);
  h = Dropout(g, Flatten(g, AvgPool2d(g, h, {2, 2}, kHalf)), 0.25);
  return SoftmaxCrossEntropy(g, Linear(g, h, b.Var({10, 64}), b.Var({10})),
                             b.Indices({kCaseSamples}, 10))
      .loss;
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

template <typename Draw>
ValueId CaseBuilder::Add(const Shape& shape, bool differentiate, const Draw& draw) {
  const std::string name = fmt::format("v{}", sources_.size());
  tensor::RandomStream stream({.seed = kSeed, .op = tensor::StreamOf(name)});
  tensor::Tensor t(shape, dtype_);
  for (int64_t i = 0; i < t.elements(); ++i) {
    const double v = draw(stream, i);
    if (dtype_ == DType::kF64) {
      t.data<double>()[i] = v;
    } else {
      t.data<float>()[i] = static_cast<float>(v);
    }
  }
  const ValueId id =
      differentiate ? graph_.Parameter(name, shape, dtype_) : graph_.Input(name, shape, dtype_);
  sources_.push_back({id, std::move(t), differentiate});
  return id;
}

ValueId CaseBuilder::Var(const Shape& shape) {
  return Add(shape, true, [](tensor::RandomStream& s, int64_t) { return AwayFromZero(s); });
}

ValueId CaseBuilder::Fixed(const Shape& shape) {
  return Add(shape, false, [](tensor::RandomStream& s, int64_t) { return AwayFromZero(s); });
}

ValueId CaseBuilder::Positive(const Shape& shape) {
  return Add(shape, false,
             [](tensor::RandomStream& s, int64_t) { return std::abs(AwayFromZero(s)); });
}

ValueId CaseBuilder::Distinct(const Shape& shape) {
  const auto order =
      tensor::Permutation(static_cast<uint32_t>(shape.elements()), kSeed, sources_.size());
  return Add(shape, true, [&](tensor::RandomStream&, int64_t i) {
    return 0.1 * static_cast<double>(order[static_cast<size_t>(i)]) - 1.0;
  });
}

ValueId CaseBuilder::Indices(const Shape& shape, int32_t bound) {
  const std::string name = fmt::format("v{}", sources_.size());
  tensor::RandomStream stream({.seed = kSeed, .op = tensor::StreamOf(name)});
  tensor::Tensor t(shape, DType::kI32);
  for (int32_t& v : t.span<int32_t>())
    v = static_cast<int32_t>(stream.Below(static_cast<uint32_t>(bound)));
  const ValueId id = graph_.Input(name, shape, DType::kI32);
  sources_.push_back({id, std::move(t), false});
  return id;
}

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
      {"MaxPoolEven", MaxPoolEven},
      {"MaxPoolWide", MaxPoolWide},
      {"MaxPoolOverlapping", MaxPoolOverlapping},
      {"AvgPoolEven", AvgPoolEven},
      {"AvgPoolPadded", AvgPoolPadded},
      {"AvgPoolPaddingNotCounted", AvgPoolPaddingNotCounted},
      {"AdaptivePoolEven", AdaptivePoolEven},
      {"AdaptivePoolUneven", AdaptivePoolUneven},
      {"AdaptivePoolLarger", AdaptivePoolLarger},
      {"GlobalPool", GlobalPool},
      {"Relu", ReluCase},
      {"Gelu", GeluCase},
      {"Tanh", TanhCase},
      {"Scale", ScaleCase},
      {"Dropout", DropoutCase},
      {"AddSame", AddSame},
      {"AddRow", AddRow},
      {"AddColumn", AddColumn},
      {"AddMiddle", AddMiddle},
      {"AddScalar", AddScalar},
      {"AddItself", AddItself},
      {"SumToRow", SumToRow},
      {"SumToChannels", SumToChannels},
      {"SumToAlternating", SumToAlternating},
      {"SumAll", SumAllCase},
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
      {"BatchNormImages", BatchNormImages},
      {"BatchNormWideImages", BatchNormWideImages},
      {"BatchNormFeatures", BatchNormFeatures},
      {"BatchNormInference", BatchNormInferenceCase},
      {"LayerNormRows", LayerNormRows},
      {"LayerNormSequences", LayerNormSequences},
      {"Embedding", EmbeddingCase},
      {"AttentionOneHead", AttentionOneHead},
      {"AttentionHeads", AttentionHeads},
      {"LossOfClasses", LossOfClasses},
      {"LossOfSequences", LossOfSequences},
      {"LossSmoothed", LossSmoothed},
      {"LossOfManyLabels", LossOfManyLabels},
      {"LogSoftmax", LogSoftmaxCase},
      {"Nll", NllCase},
      {"SquaredError", SquaredErrorCase},
      {"SmallConvolutionNetwork", SmallConvolutionNetwork},
      {"SmallTransformer", SmallTransformer},
  };
  return cases;
}

}  // namespace ringmaster::graph

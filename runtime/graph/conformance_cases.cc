#include "runtime/graph/conformance_cases.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/tensor/random.h"

namespace ringmaster::graph {
namespace {

constexpr uint64_t kSeed = 20240229;
constexpr WindowOptions kSame3{{1, 1}, {1, 1}};
constexpr WindowOptions kHalf{{2, 2}, {0, 0}};

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

ValueId LinearPlain(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({5, 7}), b.Var({3, 7}), b.Var({3}));
}
ValueId LinearOfSequences(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({2, 4, 6}), b.Var({8, 6}), b.Var({8}));
}
ValueId LinearWithoutBias(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({33, 70}), b.Var({65, 70}), ValueId{});
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
ValueId MaxPoolOverlapping(CaseBuilder& b) {
  return MaxPool2d(b.graph(), b.Distinct({1, 2, 5, 5}), {3, 3}, {{2, 2}, {1, 1}});
}
ValueId AvgPoolEven(CaseBuilder& b) {
  return AvgPool2d(b.graph(), b.Var({2, 3, 4, 6}), {2, 2}, kHalf);
}
ValueId AvgPoolPadded(CaseBuilder& b) {
  return AvgPool2d(b.graph(), b.Var({1, 2, 5, 4}), {3, 2}, {{2, 1}, {1, 1}});
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

ValueId BatchNormImages(CaseBuilder& b) {
  return BatchNorm(b.graph(), b.Var({4, 3, 2, 3}), b.Var({3}), b.Var({3}), 1e-5).y;
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
      {"Linear", LinearPlain},
      {"LinearOfSequences", LinearOfSequences},
      {"LinearWithoutBias", LinearWithoutBias},
      {"MatMul", MatMulPlain},
      {"MatMulOfSequences", MatMulOfSequences},
      {"MatMulTransposedA", MatMulA},
      {"MatMulTransposedB", MatMulB},
      {"MatMulTransposedBoth", MatMulBoth},
      {"MaxPoolEven", MaxPoolEven},
      {"MaxPoolOverlapping", MaxPoolOverlapping},
      {"AvgPoolEven", AvgPoolEven},
      {"AvgPoolPadded", AvgPoolPadded},
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
      {"BatchNormImages", BatchNormImages},
      {"BatchNormFeatures", BatchNormFeatures},
      {"BatchNormInference", BatchNormInferenceCase},
      {"LayerNormRows", LayerNormRows},
      {"LayerNormSequences", LayerNormSequences},
      {"Embedding", EmbeddingCase},
      {"AttentionOneHead", AttentionOneHead},
      {"AttentionHeads", AttentionHeads},
      {"LossOfClasses", LossOfClasses},
      {"LossOfSequences", LossOfSequences},
      {"SmallConvolutionNetwork", SmallConvolutionNetwork},
      {"SmallTransformer", SmallTransformer},
  };
  return cases;
}

}  // namespace ringmaster::graph

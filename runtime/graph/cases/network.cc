// Cases of several ops: blocks of networks, and small networks.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId SmallConvolutionNetwork(CaseBuilder& b) {
  Graph& g = b.graph();
  ValueId h = Conv2d(g, b.Var({kCaseSamples, 1, 8, 8}), b.Var({4, 1, 3, 3}), b.Var({4}), kSame3);
  h = Tanh(g, BatchNorm(g, h, b.Var({4}), b.Var({4}), 1e-5).y);
  h = Dropout(g, Flatten(g, AvgPool2d(g, h, {2, 2}, kHalf)), 0.25);
  return SoftmaxCrossEntropy(g, Linear(g, h, b.Var({10, 64}), b.Var({10})),
                             b.Indices({kCaseSamples}, 10))
      .loss;
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
// What may stand between convolutions in blocks, each of which sees what the one before made.
ValueId ActivationsInBlocks(CaseBuilder& b) {
  Graph& g = b.graph();
  ValueId x = Conv2d(g, b.Var({kCaseSamples, 3, 5, 5}), b.Var({64, 3, 3, 3}), b.Var({64}), kSame3);
  x = Dropout(g, Silu(g, Gelu(g, x)), 0.25);
  x = Conv2d(g, AdaptiveAvgPool2d(g, x, {3, 3}), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  return Multiply(g, Sigmoid(g, x), Tanh(g, ExactGelu(g, x)));
}
// A column of pixels in blocks for all columns of several images, and an operand that comes in
// rows.
ValueId BroadcastInBlocks(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId several =
      Conv2d(g, b.Var({2, 64, 3, 3}), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  const ValueId one = Conv2d(g, b.Var({1, 64, 3, 1}), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  return Multiply(g, Add(g, several, one), b.Var({2, 16, 3, 3}));
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

std::vector<Case> NetworkCases() {
  return {
      {"SmallConvolutionNetwork", SmallConvolutionNetwork},
      {"ResidualBlock", ResidualBlock},
      {"ResidualBlockReadTwice", ResidualBlockReadTwice},
      {"SynchronisedResidualBlock", SynchronisedResidualBlock},
      {"DenseBlock", DenseBlock},
      {"OddChannels", OddChannels},
      {"OddPartsOfBlocks", OddPartsOfBlocks},
      {"ActivationsInBlocks", ActivationsInBlocks},
      {"BroadcastInBlocks", BroadcastInBlocks},
      {"AttentionOfParts", AttentionOfParts},
      {"SmallTransformer", SmallTransformer},
  };
}

}  // namespace ringmaster::graph

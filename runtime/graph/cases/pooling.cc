// Cases of pooling.
#include "runtime/graph/cases/cases.h"
#include "runtime/kernels/window.h"

namespace ringmaster::graph {
namespace {

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
// As KeepTaps makes it: windows that leave the image, and such that share pixels.
ValueId MaxPoolTaps(CaseBuilder& b) {
  return b.graph().Add("max_pool2d_taps",
                       {{"window", std::vector<int64_t>{3, 2}},
                        {"stride", std::vector<int64_t>{2, 1}},
                        {"padding", std::vector<int64_t>{1, 0}}},
                       std::vector{b.Distinct({2, 3, 6, 5})}, 2, "pool")[0];
}
// First convolutions, which FuseMaxPool takes: with a ReLU, a window that is wider than high, and
// rows that end within a register.
ValueId MaxPoolOfFirstConvolution(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId image = Conv2d(g, b.Fixed({3, 1, 12, 13}), b.Var({4, 1, 5, 5}), b.Var({4}));
  return MaxPool2d(g, image, {2, 2}, kHalf);
}
ValueId MaxPoolOfFirstConvolutionWithRelu(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId image = Conv2d(g, b.Fixed({2, 3, 9, 11}), b.Var({7, 3, 2, 5}), b.Var({7}),
                               {.stride = {1, 1}, .padding = {0, 2}});
  return MaxPool2d(g, Relu(g, image), {2, 2}, kHalf);
}
// As FuseMaxPool makes them: an odd row and column that are not pooled, and windows that share
// pixels.
ValueId ConvolutionPooled(CaseBuilder& b, const Attributes& attributes) {
  return b.graph().Add("conv2d_max_pool2d", attributes,
                       std::vector{b.Var({2, 2, 9, 11}), b.Var({3, 2, 3, 3}), b.Var({3})}, 2,
                       "conv")[0];
}
ValueId MaxPoolWithConvolution(CaseBuilder& b) {
  const std::vector<int64_t> one{1, 1}, two{2, 2}, none{0, 0};
  return ConvolutionPooled(b, {{"stride", one},
                               {"padding", one},
                               {"dilation", one},
                               {"pool_window", two},
                               {"pool_stride", two},
                               {"pool_padding", none},
                               {"groups", int64_t{1}}});
}
ValueId MaxPoolOverlappingWithConvolution(CaseBuilder& b) {
  const std::vector<int64_t> one{1, 1}, two{2, 2}, three{3, 3};
  return ConvolutionPooled(b, {{"stride", two},
                               {"padding", two},
                               {"dilation", one},
                               {"pool_window", three},
                               {"pool_stride", one},
                               {"pool_padding", one},
                               {"groups", int64_t{1}}});
}
// Batch norms, which FuseNormMaxPool takes where what is pooled is no output: rows of fewer windows
// than a vector has, of four and of more; and with a ReLU.
ValueId MaxPoolOfNormIn(CaseBuilder& b, const Shape& shape) {
  Graph& g = b.graph();
  return Tanh(g, MaxPool2d(g, NormOf(b, b.Distinct(shape)), {2, 2}, kHalf));
}
ValueId MaxPoolOfNorm(CaseBuilder& b) {
  return MaxPoolOfNormIn(b, {2, 3, 4, 6});
}
ValueId MaxPoolOfNormInRowsOfFour(CaseBuilder& b) {
  return MaxPoolOfNormIn(b, {3, 1, 6, 8});
}
ValueId MaxPoolOfWideNorm(CaseBuilder& b) {
  return MaxPoolOfNormIn(b, {2, 2, 4, 38});
}
ValueId MaxPoolOfNormWithRelu(CaseBuilder& b) {
  Graph& g = b.graph();
  return Tanh(g, MaxPool2d(g, Relu(g, NormOf(b, b.Distinct({2, 2, 4, 10}))), {2, 2}, kHalf));
}
// As FuseNormMaxPool makes them; and of windows that leave the image and share pixels.
ValueId NormPooled(CaseBuilder& b, const Shape& shape, const Attributes& pooling) {
  const Shape channels({shape.dim(1)});
  return b.graph().Add("batch_norm_max_pool2d",
                       kernels::WithPooling({{"epsilon", 1e-5}, {"relu", int64_t{1}}}, pooling),
                       std::vector{b.Distinct(shape), b.Var(channels), b.Var(channels)}, 4,
                       "norm")[0];
}
ValueId MaxPoolWithNorm(CaseBuilder& b) {
  const std::vector<int64_t> two{2, 2}, none{0, 0};
  return NormPooled(b, {2, 3, 4, 22}, {{"window", two}, {"stride", two}, {"padding", none}});
}
ValueId MaxPoolOverlappingWithNorm(CaseBuilder& b) {
  return NormPooled(b, {2, 3, 6, 5},
                    {{"window", std::vector<int64_t>{3, 2}},
                     {"stride", std::vector<int64_t>{2, 1}},
                     {"padding", std::vector<int64_t>{1, 0}}});
}
// In blocks, as behind a ResNet's first convolution.
ValueId MaxPoolOfNormOfBlocks(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x = Conv2d(g, b.Fixed({2, 64, 7, 9}), b.Var({16, 64, 3, 3}), ValueId{}, kSame3);
  return MaxPool2d(g, Relu(g, NormOf(b, x)), {3, 3}, {{2, 2}, {1, 1}});
}
// In blocks, where windows tile the image.
ValueId MaxPoolOfBlocks(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x = Conv2d(g, b.Var({2, 64, 4, 6}), b.Var({16, 64, 3, 3}), b.Var({16}), kSame3);
  return MaxPool2d(g, Relu(g, x), {2, 2}, kHalf);
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
// Rows of whole vectors, what is left of them, and windows that share columns.
ValueId AdaptivePoolWide(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({2, 3, 7, 19}), {3, 5});
}
ValueId AdaptiveMaxPoolEven(CaseBuilder& b) {
  return AdaptiveMaxPool2d(b.graph(), b.Distinct({2, 3, 6, 4}), {3, 2});
}
ValueId AdaptiveMaxPoolUneven(CaseBuilder& b) {
  return AdaptiveMaxPool2d(b.graph(), b.Distinct({2, 3, 7, 5}), {3, 2});
}
// Each pixel is the largest of several windows.
ValueId AdaptiveMaxPoolLarger(CaseBuilder& b) {
  return AdaptiveMaxPool2d(b.graph(), b.Distinct({1, 2, 2, 3}), {5, 4});
}
ValueId AdaptiveMaxPoolWide(CaseBuilder& b) {
  return AdaptiveMaxPool2d(b.graph(), b.Distinct({2, 3, 7, 19}), {3, 5});
}
ValueId GlobalPool(CaseBuilder& b) {
  return AdaptiveAvgPool2d(b.graph(), b.Var({2, 9, 7, 7}), {1, 1});
}

}  // namespace

std::vector<Case> PoolingCases() {
  return {
      {"MaxPoolEven", MaxPoolEven},
      {"MaxPoolWide", MaxPoolWide},
      {"MaxPoolRowsOfFour", MaxPoolRowsOfFour},
      {"MaxPoolRowsOfTwelve", MaxPoolRowsOfTwelve},
      {"MaxPoolOfRelu", MaxPoolOfRelu},
      {"MaxPoolOfConvolution", MaxPoolOfConvolution},
      {"MaxPoolOverlapping", MaxPoolOverlapping},
      {"MaxPoolOverlappingWide", MaxPoolOverlappingWide},
      {"MaxPoolTaps", MaxPoolTaps},
      {"MaxPoolOfFirstConvolution", MaxPoolOfFirstConvolution},
      {"MaxPoolOfFirstConvolutionWithRelu", MaxPoolOfFirstConvolutionWithRelu},
      {"MaxPoolWithConvolution", MaxPoolWithConvolution},
      {"MaxPoolOverlappingWithConvolution", MaxPoolOverlappingWithConvolution},
      {"MaxPoolOfNorm", MaxPoolOfNorm},
      {"MaxPoolOfNormInRowsOfFour", MaxPoolOfNormInRowsOfFour},
      {"MaxPoolOfWideNorm", MaxPoolOfWideNorm},
      {"MaxPoolOfNormWithRelu", MaxPoolOfNormWithRelu},
      {"MaxPoolWithNorm", MaxPoolWithNorm},
      {"MaxPoolOverlappingWithNorm", MaxPoolOverlappingWithNorm},
      {"MaxPoolOfNormOfBlocks", MaxPoolOfNormOfBlocks},
      {"MaxPoolOfBlocks", MaxPoolOfBlocks},
      {"AvgPoolEven", AvgPoolEven},
      {"AvgPoolPadded", AvgPoolPadded},
      {"AvgPoolPaddingNotCounted", AvgPoolPaddingNotCounted},
      {"AdaptivePoolEven", AdaptivePoolEven},
      {"AdaptivePoolUneven", AdaptivePoolUneven},
      {"AdaptivePoolLarger", AdaptivePoolLarger},
      {"AdaptivePoolWide", AdaptivePoolWide},
      {"AdaptiveMaxPoolEven", AdaptiveMaxPoolEven},
      {"AdaptiveMaxPoolUneven", AdaptiveMaxPoolUneven},
      {"AdaptiveMaxPoolLarger", AdaptiveMaxPoolLarger},
      {"AdaptiveMaxPoolWide", AdaptiveMaxPoolWide},
      {"GlobalPool", GlobalPool},
  };
}

}  // namespace ringmaster::graph

// Cases of convolutions.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

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
// As long as a register, and of several samples: for the kernel that takes images as they lie.
ValueId ConvOfLongRows(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 1, 3, 17}), b.Var({2, 1, 2, 3}), b.Var({2}));
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
// As many places as the kernels over tiles of images in blocks want.
ValueId ConvOverTiles(CaseBuilder& b) {
  Graph& g = b.graph();
  return Relu(g, Conv2d(g, b.Var({4, 64, 8, 7}), b.Var({16, 64, 3, 3}), ValueId{}, kSame3));
}
// The gradient of the second FuseReluGrad joins with the ReLU's before it.
ValueId ConvOfReluOverTiles(CaseBuilder& b) {
  Graph& g = b.graph();
  const ValueId x = Conv2d(g, b.Var({4, 8, 8, 7}), b.Var({64, 1, 3, 3}), ValueId{},
                           {.padding = {1, 1}, .groups = 8});
  return Conv2d(g, Relu(g, x), b.Var({16, 64, 3, 3}), ValueId{}, kSame3);
}
// Enough for a matrix unit, forward and both gradients.
ValueId ConvPointwiseLarge(CaseBuilder& b) {
  return Conv2d(b.graph(), b.Var({2, 128, 12, 12}), b.Var({288, 128, 1, 1}), b.Var({288}));
}

}  // namespace

std::vector<Case> ConvolutionCases() {
  return {
      {"Conv2dPadded", ConvPadded},
      {"Conv2dStrided", ConvStrided},
      {"Conv2dWide", ConvWide},
      {"Conv2dFirstLayer", ConvFirstLayer},
      {"Conv2dOfLongRows", ConvOfLongRows},
      {"Conv2dWithoutBias", ConvWithoutBias},
      {"Conv2dDilated", ConvDilated},
      {"Conv2dDilatedPastTheImage", ConvDilatedPastTheImage},
      {"Conv2dGrouped", ConvGrouped},
      {"Conv2dGroupedWide", ConvGroupedWide},
      {"Conv2dDepthwise", ConvDepthwise},
      {"Conv2dDepthwiseMultiplied", ConvDepthwiseMultiplied},
      {"ConvThenRelu", ConvThenRelu},
      {"ConvWideThenRelu", ConvWideThenRelu},
      {"ConvGroupedThenRelu", ConvGroupedThenRelu},
      {"ConvWithoutBiasThenRelu", ConvWithoutBiasThenRelu},
      {"ConvOverTiles", ConvOverTiles},
      {"ConvOfReluOverTiles", ConvOfReluOverTiles},
      {"Conv2dPointwiseLarge", ConvPointwiseLarge, true},
  };
}

}  // namespace ringmaster::graph

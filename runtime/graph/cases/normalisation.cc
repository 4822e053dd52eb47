// Cases of batch norm and layer norm.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {

ValueId NormOf(CaseBuilder& b, ValueId x) {
  const int64_t channels = b.graph().shape(x).dim(1);
  return BatchNorm(b.graph(), x, b.Var({channels}), b.Var({channels}), 1e-5).y;
}
ValueId SynchronisedNormOf(CaseBuilder& b, ValueId x) {
  const int64_t channels = b.graph().shape(x).dim(1);
  return SynchronisedBatchNorm(b.graph(), x, b.Var({channels}), b.Var({channels}), 1e-5).y;
}

namespace {

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
// As FuseConvNorm makes it, seen in the same way: the op itself, and nodes that become it where
// images lie in blocks (of which Winograd's kernels take the first, the matrix unit the last).
ValueId ConvolutionNorm(CaseBuilder& b) {
  const std::vector<int64_t> one{1, 1}, two{2, 2};
  const Attributes attributes = {{"stride", two},   {"padding", one},       {"dilation", one},
                                 {"epsilon", 1e-5}, {"groups", int64_t{1}}, {"relu", int64_t{1}}};
  const Shape image{2, 4, 4, 3}, channels{4};
  const std::vector<ValueId> inputs = {
      b.Fixed({2, 3, 7, 6}), b.Fixed({4, 3, 3, 3}), b.Fixed(channels), b.Fixed(channels),
      b.Fixed(channels),     b.Positive(channels),  b.Fixed(image)};
  const auto made = b.graph().Add("conv2d_batch_norm", attributes, inputs, 1, "conv");
  return Multiply(b.graph(), b.Var(image), made[0]);
}
ValueId NormOfConvolution(CaseBuilder& b, const Shape& x, int64_t out, int64_t window, bool plus) {
  Graph& g = b.graph();
  const Shape channels{out}, image{x.dim(0), out, x.dim(2), x.dim(3)};
  const int64_t padding = window / 2;
  ValueId y = Conv2d(g, b.Fixed(x), b.Fixed({out, x.dim(1), window, window}), ValueId{},
                     {.stride = {1, 1}, .padding = {padding, padding}});
  y = BatchNormInference(g, y, b.Fixed(channels), b.Fixed(channels), b.Fixed(channels),
                         b.Positive(channels), 1e-5);
  if (plus) y = Add(g, y, b.Fixed(image));
  return Multiply(g, b.Var(image), Relu(g, y));
}
ValueId NormOfConvolutionByTiles(CaseBuilder& b) {
  return NormOfConvolution(b, {2, 64, 14, 13}, 32, 3, false);
}
ValueId NormOfConvolutionByTilesPlus(CaseBuilder& b) {
  return NormOfConvolution(b, {2, 64, 14, 13}, 32, 3, true);
}
ValueId NormOfWideConvolutionByTiles(CaseBuilder& b) {
  return NormOfConvolution(b, {4, 64, 13, 13}, 64, 5, true);
}
ValueId NormOfPointwiseConvolution(CaseBuilder& b) {
  return NormOfConvolution(b, {2, 144, 24, 20}, 80, 1, true);
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

}  // namespace

std::vector<Case> NormalisationCases() {
  return {
      {"BatchNormImages", BatchNormImages},
      {"BatchNormWideImages", BatchNormWideImages},
      {"BatchNormFeatures", BatchNormFeatures},
      {"BatchNormAgain", BatchNormAgain},
      {"BatchNormPlusAgain", BatchNormPlusAgain},
      {"BatchNormAddReluGrad", BatchNormAddReluGrad},
      {"BatchNormAddReluGradOfTwo", BatchNormAddReluGradOfTwo},
      {"BatchNormInference", BatchNormInferenceCase},
      {"BatchNormInferenceThenRelu", BatchNormInferenceThenRelu},
      {"ConvolutionNorm", ConvolutionNorm},
      {"NormOfConvolutionByTiles", NormOfConvolutionByTiles},
      {"NormOfConvolutionByTilesPlus", NormOfConvolutionByTilesPlus},
      {"NormOfWideConvolutionByTiles", NormOfWideConvolutionByTiles, true},
      {"NormOfPointwiseConvolution", NormOfPointwiseConvolution, true},
      {"LayerNormRows", LayerNormRows},
      {"LayerNormSequences", LayerNormSequences},
      {"LayerNormManyRows", LayerNormManyRows},
      {"SynchronisedNormOfFewPixels", SynchronisedNormOfFewPixels},
      {"SynchronisedNormOfFeatures", SynchronisedNormOfFeatures},
      {"SynchronisedNormThenRelu", SynchronisedNormThenRelu},
      {"SynchronisedNormPlusThenRelu", SynchronisedNormPlusThenRelu},
      {"BatchNormThenRelu", BatchNormThenRelu},
      {"BatchNormOfFewPixelsThenRelu", BatchNormOfFewPixelsThenRelu},
      {"BatchNormPlusThenRelu", BatchNormPlusThenRelu},
  };
}

}  // namespace ringmaster::graph

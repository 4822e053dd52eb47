// Convolution over [N, C, H, W] that is max-pooled at once, as FuseMaxPool makes it of two ops.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"
#include "runtime/kernels/window.h"

namespace ringmaster::graph {
namespace {

// What is pooled, and for each of its pixels which place of its window it was.
Specs InferConv2dMaxPool(const InferContext& context) {
  RM_ASSIGN_OR_RETURN(const std::vector<ValueSpec> image, kConv2d.infer(context));
  return kMaxPool2dTaps.infer({kernels::PoolingOf(context.attributes), image});
}

Specs InferConv2dMaxPoolGradWeight(const InferContext& context) {
  if (context.inputs.size() != 3) return Misfit("takes 3 inputs");
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, 2));
  const ValueSpec expected{{context.inputs[1].shape.elements()}, DType::kU8};
  if (!(context.inputs[2] == expected))
    return Misfit(fmt::format("the places must be {}", expected.ToString()));
  return InferFromAttribute(context);
}

void Conv2dMaxPoolGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId x = c.input(0), weight = c.input(1), dy = c.output_gradient(0), taps = c.output(1);
  const auto with_shape_of = [&](const Attributes& a, ValueId value) {
    return a.With("shape", ToInts(g.shape(value)));
  };
  if (c.Needs(2)) {
    const Shape bias = g.shape(c.input(2));
    const ValueId sums = SumTo(g, dy, {bias.dim(0), 1, 1}, c.Name("bias"));
    c.SetGradient(2, Reshape(g, sums, bias, c.Name("bias_shape")));
  }
  if (c.Needs(1)) {
    c.SetGradient(1,
                  g.AddOne("conv2d_max_pool2d_grad_weight", with_shape_of(c.attributes(), weight),
                           {x, dy, taps}, c.Name("weight")));
  }
  if (c.Needs(0)) {
    const Shape image = kernels::ConvolvedShape(g.shape(x), g.shape(weight), c.attributes());
    const Attributes pooling = kernels::PoolingOf(c.attributes()).With("shape", ToInts(image));
    const ValueId of_image = g.AddOne("max_pool2d_taps_grad", pooling, {dy, taps}, c.Name("image"));
    c.SetGradient(0, g.AddOne("conv2d_grad_input", with_shape_of(c.attributes(), x),
                              {of_image, weight}, c.Name("x")));
  }
}

}  // namespace

constinit const OpDefinition kConv2dMaxPool2d{"conv2d_max_pool2d", 2, InferConv2dMaxPool,
                                              Conv2dMaxPoolGradient};
constinit const OpDefinition kConv2dMaxPool2dGradWeight{"conv2d_max_pool2d_grad_weight", 1,
                                                        InferConv2dMaxPoolGradWeight, nullptr};

}  // namespace ringmaster::graph

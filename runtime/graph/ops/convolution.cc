// Convolution over [N, C, H, W].
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

std::vector<int64_t> Pair(std::array<int64_t, 2> p) {
  return {p[0], p[1]};
}

// The attributes of `a`, and the shape of the gradient to make.
Attributes WithShape(const Attributes& a, const Shape& shape) {
  return {{"stride", a.Ints("stride")},
          {"padding", a.Ints("padding")},
          {"dilation", a.Ints("dilation")},
          {"groups", a.Int("groups")},
          {"shape", ToInts(shape)}};
}

absl::Status CheckGroups(const Shape& x, const Shape& w, int64_t groups) {
  if (groups < 1) return Misfit("there must be at least 1 group");
  if (x.dim(1) % groups != 0 || w.dim(0) % groups != 0) {
    return Misfit(fmt::format("{} input and {} output channels do not divide into {} groups",
                              x.dim(1), w.dim(0), groups));
  }
  if (x.dim(1) / groups == w.dim(1)) return absl::OkStatus();
  const std::string in_groups = groups == 1 ? "" : fmt::format(" in {} groups", groups);
  return Misfit(fmt::format("weight {} takes {} channels, x {} has {}{}", w.ToString(), w.dim(1),
                            x.ToString(), x.dim(1), in_groups));
}

// With the attribute "relu", y is its positive part, as of batch norm. Gradients are of nodes
// without it: they are built before the passes.
Specs InferConv2d(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 3));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 4, "x"));
  RM_RETURN_IF_ERROR(CheckRank(context, 1, 4, "weight"));
  RM_RETURN_IF_ERROR(CheckWindow(context.attributes));
  const Shape &x = context.inputs[0].shape, &w = context.inputs[1].shape;
  RM_RETURN_IF_ERROR(CheckGroups(x, w, context.attributes.Int("groups")));
  if (context.inputs.size() == 3) RM_RETURN_IF_ERROR(CheckShape(context, 2, {w.dim(0)}, "bias"));
  const auto [h, width] = WindowResult(x, {w.dim(2), w.dim(3)}, context.attributes);
  if (h < 1) return Misfit("the kernel is larger than the padded image");
  return std::vector{ValueSpec{{x.dim(0), w.dim(0), h, width}, context.inputs[0].dtype}};
}

void Conv2dGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId dy = c.output_gradient(0);
  if (c.Needs(2)) {
    const Shape bias = g.shape(c.input(2));
    const ValueId sums = SumTo(g, dy, {bias.dim(0), 1, 1}, c.Name("bias"));
    c.SetGradient(2, Reshape(g, sums, bias, c.Name("bias_shape")));
  }
  if (c.Needs(1)) {
    const Attributes a = WithShape(c.attributes(), g.shape(c.input(1)));
    c.SetGradient(1, g.AddOne("conv2d_grad_weight", a, {c.input(0), dy}, c.Name("weight")));
  }
  if (c.Needs(0)) {
    const Attributes a = WithShape(c.attributes(), g.shape(c.input(0)));
    c.SetGradient(0, g.AddOne("conv2d_grad_input", a, {dy, c.input(1)}, c.Name("x")));
  }
}

// With a third input, x, which is a ReLU's result, dx is the gradient by what that was of: 0 where
// x is not positive (FuseReluGrad).
Specs InferConv2dGradInput(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 3));
  RM_ASSIGN_OR_RETURN(const std::vector<ValueSpec> outputs, InferFromAttribute(context));
  if (context.inputs.size() == 3) RM_RETURN_IF_ERROR(CheckShape(context, 2, outputs[0].shape, "x"));
  return outputs;
}

}  // namespace

constinit const OpDefinition kConv2d{"conv2d", 1, InferConv2d, Conv2dGradient};
constinit const OpDefinition kConv2dGradInput{"conv2d_grad_input", 1, InferConv2dGradInput,
                                              nullptr};
constinit const OpDefinition kConv2dGradWeight{"conv2d_grad_weight", 1, InferFromAttribute,
                                               nullptr};

ValueId Conv2d(Graph& g, ValueId x, ValueId weight, ValueId bias, const Conv2dOptions& options,
               std::string_view name) {
  const Attributes attributes = {{"stride", Pair(options.stride)},
                                 {"padding", Pair(options.padding)},
                                 {"dilation", Pair(options.dilation)},
                                 {"groups", options.groups}};
  if (!bias.valid()) return g.AddOne("conv2d", attributes, {x, weight}, name);
  return g.AddOne("conv2d", attributes, {x, weight, bias}, name);
}

}  // namespace ringmaster::graph

// Convolution and pooling over [N, C, H, W].
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

std::vector<int64_t> Pair(std::array<int64_t, 2> p) {
  return {p[0], p[1]};
}

Attributes WindowAttributes(const WindowOptions& options) {
  return {{"stride", Pair(options.stride)}, {"padding", Pair(options.padding)}};
}

// The window attributes of `a`, and the shape of the gradient to make.
Attributes WithShape(const Attributes& a, const Shape& shape) {
  return {{"window", a.Ints("window")},
          {"stride", a.Ints("stride")},
          {"padding", a.Ints("padding")},
          {"shape", ToInts(shape)}};
}

Specs InferConv2d(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 3));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 4, "x"));
  RM_RETURN_IF_ERROR(CheckRank(context, 1, 4, "weight"));
  RM_RETURN_IF_ERROR(CheckWindow(context.attributes));
  const Shape &x = context.inputs[0].shape, &w = context.inputs[1].shape;
  if (x.dim(1) != w.dim(1)) {
    return Misfit(fmt::format("weight {} takes {} channels, x {} has {}", w.ToString(), w.dim(1),
                              x.ToString(), x.dim(1)));
  }
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

Specs InferPool(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 4, "x"));
  RM_RETURN_IF_ERROR(CheckWindow(context.attributes));
  const auto window = context.attributes.Ints("window"),
             padding = context.attributes.Ints("padding");
  if (padding[0] >= window[0] || padding[1] >= window[1]) {
    return Misfit("the padding must be less than the window");
  }
  const Shape& x = context.inputs[0].shape;
  const auto [h, w] = WindowResult(x, {window[0], window[1]}, context.attributes);
  if (h < 1) return Misfit("the window is larger than the padded image");
  return std::vector{ValueSpec{{x.dim(0), x.dim(1), h, w}, context.inputs[0].dtype}};
}

void MaxPoolGradient(GradientContext& c) {
  c.SetGradient(0, c.graph().AddOne("max_pool2d_grad", c.attributes(),
                                    {c.input(0), c.output_gradient(0)}, c.Name("x")));
}

void AvgPoolGradient(GradientContext& c) {
  const Attributes a = WithShape(c.attributes(), c.graph().shape(c.input(0)));
  c.SetGradient(0, c.graph().AddOne("avg_pool2d_grad", a, {c.output_gradient(0)}, c.Name("x")));
}

ValueId Pool(Graph& g, std::string_view op, ValueId x, std::array<int64_t, 2> window,
             const WindowOptions& options, std::string_view name) {
  return g.AddOne(op,
                  {{"window", Pair(window)},
                   {"stride", Pair(options.stride)},
                   {"padding", Pair(options.padding)}},
                  {x}, name);
}

}  // namespace

constinit const OpDefinition kConv2d{"conv2d", 1, InferConv2d, Conv2dGradient};
constinit const OpDefinition kConv2dGradInput{"conv2d_grad_input", 1, InferFromAttribute, nullptr};
constinit const OpDefinition kConv2dGradWeight{"conv2d_grad_weight", 1, InferFromAttribute,
                                               nullptr};
constinit const OpDefinition kMaxPool2d{"max_pool2d", 1, InferPool, MaxPoolGradient};
constinit const OpDefinition kMaxPool2dGrad{"max_pool2d_grad", 1, InferLikeFirst, nullptr};
constinit const OpDefinition kAvgPool2d{"avg_pool2d", 1, InferPool, AvgPoolGradient};
constinit const OpDefinition kAvgPool2dGrad{"avg_pool2d_grad", 1, InferFromAttribute, nullptr};

ValueId Conv2d(Graph& g, ValueId x, ValueId weight, ValueId bias, const WindowOptions& options,
               std::string_view name) {
  if (!bias.valid()) return g.AddOne("conv2d", WindowAttributes(options), {x, weight}, name);
  return g.AddOne("conv2d", WindowAttributes(options), {x, weight, bias}, name);
}

ValueId MaxPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const WindowOptions& options,
                  std::string_view name) {
  return Pool(g, "max_pool2d", x, window, options, name);
}

ValueId AvgPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const WindowOptions& options,
                  std::string_view name) {
  return Pool(g, "avg_pool2d", x, window, options, name);
}

}  // namespace ringmaster::graph

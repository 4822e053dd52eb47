// Pooling over [N, C, H, W].
#include <array>
#include <optional>

#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

std::vector<int64_t> Pair(std::array<int64_t, 2> p) {
  return {p[0], p[1]};
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

// The second result: of each pixel of the first, in the order in which these lie, which place of
// its window it came from, counted in row order.
Specs InferMaxPoolTaps(const InferContext& context) {
  RM_ASSIGN_OR_RETURN(std::vector<ValueSpec> specs, InferPool(context));
  const auto window = context.attributes.Ints("window");
  if (window[0] * window[1] > kMostTaps)
    return Misfit(fmt::format("the window has more than {} places", kMostTaps));
  specs.push_back({{specs[0].shape.elements()}, DType::kU8});
  return specs;
}

Specs InferMaxPoolTapsGrad(const InferContext& context) {
  if (context.inputs.size() != 2) return Misfit("takes 2 inputs");
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, 1));
  const ValueSpec expected{{context.inputs[0].shape.elements()}, DType::kU8};
  if (!(context.inputs[1] == expected))
    return Misfit(fmt::format("the places must be {}", expected.ToString()));
  return InferFromAttribute(context);
}

void MaxPoolTapsGradient(GradientContext& c) {
  const auto attributes = c.attributes().With("shape", ToInts(c.graph().shape(c.input(0))));
  c.SetGradient(0, c.graph().AddOne("max_pool2d_taps_grad", attributes,
                                    {c.output_gradient(0), c.output(1)}, c.Name("x")));
}

void AvgPoolGradient(GradientContext& c) {
  const Attributes& a = c.attributes();
  const Attributes attributes = {{"window", a.Ints("window")},
                                 {"stride", a.Ints("stride")},
                                 {"padding", a.Ints("padding")},
                                 {"count_padding", a.Int("count_padding")},
                                 {"shape", ToInts(c.graph().shape(c.input(0)))}};
  c.SetGradient(
      0, c.graph().AddOne("avg_pool2d_grad", attributes, {c.output_gradient(0)}, c.Name("x")));
}

Specs InferAdaptive(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 4, "x"));
  const auto size = context.attributes.Ints("size");
  const Shape& x = context.inputs[0].shape;
  return std::vector{ValueSpec{{x.dim(0), x.dim(1), size[0], size[1]}, context.inputs[0].dtype}};
}

void AdaptiveMaxGradient(GradientContext& c) {
  c.SetGradient(0, c.graph().AddOne("adaptive_max_pool2d_grad", {},
                                    {c.input(0), c.output_gradient(0)}, c.Name("x")));
}

void AdaptiveAvgGradient(GradientContext& c) {
  const Attributes attributes = {{"shape", ToInts(c.graph().shape(c.input(0)))}};
  c.SetGradient(0, c.graph().AddOne("adaptive_avg_pool2d_grad", attributes, {c.output_gradient(0)},
                                    c.Name("x")));
}

// The size of all windows of adaptive pooling, where they have one.
std::optional<std::array<int64_t, 2>> CommonWindow(const Shape& x, std::array<int64_t, 2> size) {
  if (x.rank() != 4 || size[0] < 1 || size[1] < 1 || x.dim(2) % size[0] != 0 ||
      x.dim(3) % size[1] != 0)
    return std::nullopt;
  return std::array{x.dim(2) / size[0], x.dim(3) / size[1]};
}

}  // namespace

constinit const OpDefinition kMaxPool2d{"max_pool2d", 1, InferPool, MaxPoolGradient};
constinit const OpDefinition kMaxPool2dGrad{"max_pool2d_grad", 1, InferLikeFirst, nullptr};
constinit const OpDefinition kMaxPool2dTaps{"max_pool2d_taps", 2, InferMaxPoolTaps,
                                            MaxPoolTapsGradient};
constinit const OpDefinition kMaxPool2dTapsGrad{"max_pool2d_taps_grad", 1, InferMaxPoolTapsGrad,
                                                nullptr};
constinit const OpDefinition kAvgPool2d{"avg_pool2d", 1, InferPool, AvgPoolGradient};
constinit const OpDefinition kAvgPool2dGrad{"avg_pool2d_grad", 1, InferFromAttribute, nullptr};
constinit const OpDefinition kAdaptiveAvgPool2d{"adaptive_avg_pool2d", 1, InferAdaptive,
                                                AdaptiveAvgGradient};
constinit const OpDefinition kAdaptiveAvgPool2dGrad{"adaptive_avg_pool2d_grad", 1,
                                                    InferFromAttribute, nullptr};
constinit const OpDefinition kAdaptiveMaxPool2d{"adaptive_max_pool2d", 1, InferAdaptive,
                                                AdaptiveMaxGradient};
constinit const OpDefinition kAdaptiveMaxPool2dGrad{"adaptive_max_pool2d_grad", 1, InferLikeFirst,
                                                    nullptr};

ValueId MaxPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const PoolOptions& options,
                  std::string_view name) {
  return g.AddOne("max_pool2d",
                  {{"window", Pair(window)},
                   {"stride", Pair(options.stride)},
                   {"padding", Pair(options.padding)}},
                  {x}, name);
}

ValueId AvgPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const PoolOptions& options,
                  std::string_view name) {
  return g.AddOne("avg_pool2d",
                  {{"window", Pair(window)},
                   {"stride", Pair(options.stride)},
                   {"padding", Pair(options.padding)},
                   {"count_padding", int64_t{options.count_padding}}},
                  {x}, name);
}

// Where all windows have one size, as one of each plane has, pooling by that size is the same.
ValueId AdaptiveAvgPool2d(Graph& g, ValueId x, std::array<int64_t, 2> size, std::string_view name) {
  const auto window = CommonWindow(g.shape(x), size);
  if (!window) return g.AddOne("adaptive_avg_pool2d", {{"size", Pair(size)}}, {x}, name);
  if (window == std::array<int64_t, 2>{1, 1}) return x;
  return AvgPool2d(g, x, *window, {.stride = *window}, name);
}

ValueId AdaptiveMaxPool2d(Graph& g, ValueId x, std::array<int64_t, 2> size, std::string_view name) {
  const auto window = CommonWindow(g.shape(x), size);
  if (!window) return g.AddOne("adaptive_max_pool2d", {{"size", Pair(size)}}, {x}, name);
  if (window == std::array<int64_t, 2>{1, 1}) return x;
  return MaxPool2d(g, x, *window, {.stride = *window}, name);
}

}  // namespace ringmaster::graph

// Ops that work on each element alone: add, subtract, multiply, divide, activations, scale,
// dropout, copy, reorder, constant.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

// The shape that both have after NumPy broadcasting; nothing where they do not fit.
std::optional<Shape> CommonShape(const Shape& a, const Shape& b) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (int axis = 1; axis <= std::ssize(dims); ++axis) {
    const int64_t of_a = axis <= a.rank() ? a.dim(-axis) : 1;
    const int64_t of_b = axis <= b.rank() ? b.dim(-axis) : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return std::nullopt;
    dims[dims.size() - static_cast<size_t>(axis)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(dims);
}

// Whether NumPy broadcasting makes `small` into `large`.
bool Broadcasts(const Shape& small, const Shape& large) {
  return CommonShape(small, large) == large;
}

// x repeated to `shape`, which it broadcasts to.
ValueId Expand(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  const ValueId zeros = Constant(g, 0.0, {shape, g.spec(x).dtype});
  return g.AddOne("add", {}, {zeros, x}, name);
}

// Kernels want a first operand of the result's shape; here either may be the smaller one. Shapes
// that do not fit are left to the node to refuse.
ValueId AddBroadcast(Graph& g, std::string_view type, ValueId a, ValueId b, std::string_view name) {
  const bool alike =
      a.valid() && b.valid() && IsReal(g.spec(a).dtype) && g.spec(a).dtype == g.spec(b).dtype;
  const std::optional<Shape> common = alike ? CommonShape(g.shape(a), g.shape(b)) : std::nullopt;
  if (!common || g.shape(a) == *common) return g.AddOne(type, {}, {a, b}, name);
  const bool commutes = type == "add" || type == "multiply";
  if (commutes && g.shape(b) == *common) return g.AddOne(type, {}, {b, a}, name);
  const std::string expanded = name.empty() ? "" : fmt::format("{}.expanded", name);
  return g.AddOne(type, {}, {Expand(g, a, *common, expanded), b}, name);
}

Specs InferBroadcast(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 2));
  if (!Broadcasts(context.inputs[1].shape, context.inputs[0].shape)) {
    return Misfit("the shapes do not broadcast together");
  }
  return std::vector{context.inputs[0]};
}

void AddGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  if (c.Needs(0)) c.SetGradient(0, dy);
  if (!c.Needs(1)) return;
  const Shape shape = c.graph().shape(c.input(1));
  const bool same = shape == c.graph().shape(dy);
  c.SetGradient(1, same ? dy : SumTo(c.graph(), dy, shape, c.Name("b")));
}

void MultiplyGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId a = c.input(0), b = c.input(1), dy = c.output_gradient(0);
  if (c.Needs(0)) c.SetGradient(0, Multiply(g, dy, b, c.Name("a")));
  if (!c.Needs(1)) return;
  const ValueId db = Multiply(g, dy, a, c.Name("b"));
  const Shape shape = g.shape(b);
  c.SetGradient(1, shape == g.shape(db) ? db : SumTo(g, db, shape, c.Name("b_sum")));
}

void SubtractGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId dy = c.output_gradient(0);
  if (c.Needs(0)) c.SetGradient(0, dy);
  if (!c.Needs(1)) return;
  const ValueId db = Scale(g, dy, -1.0, c.Name("b"));
  const Shape shape = g.shape(c.input(1));
  c.SetGradient(1, shape == g.shape(db) ? db : SumTo(g, db, shape, c.Name("b_sum")));
}

// d(a / b) = da / b - (a / b) db / b
void DivideGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId b = c.input(1), da = Divide(g, c.output_gradient(0), b, c.Name("a"));
  if (c.Needs(0)) c.SetGradient(0, da);
  if (!c.Needs(1)) return;
  const ValueId db = Scale(g, Multiply(g, da, c.output(0), c.Name("b_share")), -1.0, c.Name("b"));
  const Shape shape = g.shape(b);
  c.SetGradient(1, shape == g.shape(db) ? db : SumTo(g, db, shape, c.Name("b_sum")));
}

Specs InferSumTo(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  const Shape shape = ShapeAttribute(context.attributes);
  if (!Broadcasts(shape, context.inputs[0].shape)) {
    return Misfit(fmt::format("{} does not broadcast to the input", shape.ToString()));
  }
  return std::vector{ValueSpec{shape, context.inputs[0].dtype}};
}

void SumToGradient(GradientContext& c) {
  const Shape shape = c.graph().shape(c.input(0));
  c.SetGradient(0, Expand(c.graph(), c.output_gradient(0), shape, c.Name("x")));
}

void ReluGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("relu_grad", {}, {c.output(0), c.output_gradient(0)}, c.Name("x")));
}

// (y, dy), or (y, dy, dy2) for the gradient dy + dy2.
Specs InferReluGrad(const InferContext& context) {
  const size_t inputs = context.inputs.size() == 3 ? 3 : 2;
  RM_RETURN_IF_ERROR(CheckReal(context, inputs, inputs));
  for (size_t i = 1; i < inputs; ++i) {
    RM_RETURN_IF_ERROR(CheckShape(context, i, context.inputs[0].shape, fmt::format("input {}", i)));
  }
  return std::vector{context.inputs[0]};
}

void GeluGradient(GradientContext& c) {
  c.SetGradient(0,
                c.graph().AddOne("gelu_grad", {}, {c.input(0), c.output_gradient(0)}, c.Name("x")));
}

void ExactGeluGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("exact_gelu_grad", {}, {c.input(0), c.output_gradient(0)}, c.Name("x")));
}

void TanhGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("tanh_grad", {}, {c.output(0), c.output_gradient(0)}, c.Name("x")));
}

void SigmoidGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("sigmoid_grad", {}, {c.output(0), c.output_gradient(0)}, c.Name("x")));
}

void SiluGradient(GradientContext& c) {
  c.SetGradient(0,
                c.graph().AddOne("silu_grad", {}, {c.input(0), c.output_gradient(0)}, c.Name("x")));
}

void ScaleGradient(GradientContext& c) {
  c.SetGradient(0,
                Scale(c.graph(), c.output_gradient(0), c.attributes().Real("factor"), c.Name("x")));
}

Specs InferDropout(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  const double rate = context.attributes.Real("rate");
  if (!(rate >= 0.0 && rate < 1.0))
    return Misfit(fmt::format("rate must lie in [0, 1), got {}", rate));
  if (context.inputs[0].shape.rank() < 1) return Misfit("the input needs a batch axis");
  return std::vector{context.inputs[0]};
}

// The same mask on the way back: the op draws it again instead of keeping it.
void DropoutGradient(GradientContext& c) {
  c.SetGradient(0,
                c.graph().AddOne("dropout", c.attributes(), {c.output_gradient(0)}, c.Name("x")));
}

void CopyGradient(GradientContext& c) {
  c.SetGradient(0, c.output_gradient(0));
}

Specs InferCopy(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes 1 input");
  return std::vector{context.inputs[0]};
}

Specs InferConstant(const InferContext& context) {
  const auto dtype = static_cast<DType>(context.attributes.Int("dtype"));
  if (dtype != DType::kF32 && dtype != DType::kF64) return Misfit("a constant must be f32 or f64");
  return std::vector{ValueSpec{ShapeAttribute(context.attributes), dtype}};
}

}  // namespace

constinit const OpDefinition kAdd{"add", 1, InferBroadcast, AddGradient};
constinit const OpDefinition kSubtract{"subtract", 1, InferBroadcast, SubtractGradient};
constinit const OpDefinition kDivide{"divide", 1, InferBroadcast, DivideGradient};
constinit const OpDefinition kMultiply{"multiply", 1, InferBroadcast, MultiplyGradient};
constinit const OpDefinition kSumTo{"sum_to", 1, InferSumTo, SumToGradient};
constinit const OpDefinition kRelu{"relu", 1, InferSame, ReluGradient};
constinit const OpDefinition kReluGrad{"relu_grad", 1, InferReluGrad, nullptr};
constinit const OpDefinition kGelu{"gelu", 1, InferSame, GeluGradient};
constinit const OpDefinition kGeluGrad{"gelu_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kExactGelu{"exact_gelu", 1, InferSame, ExactGeluGradient};
constinit const OpDefinition kExactGeluGrad{"exact_gelu_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kTanh{"tanh", 1, InferSame, TanhGradient};
constinit const OpDefinition kTanhGrad{"tanh_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kSigmoid{"sigmoid", 1, InferSame, SigmoidGradient};
constinit const OpDefinition kSigmoidGrad{"sigmoid_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kSilu{"silu", 1, InferSame, SiluGradient};
constinit const OpDefinition kSiluGrad{"silu_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kScale{"scale", 1, InferSame, ScaleGradient};
constinit const OpDefinition kDropout{.type = "dropout",
                                      .output_count = 1,
                                      .infer = InferDropout,
                                      .gradient = DropoutGradient,
                                      .random = true};
constinit const OpDefinition kCopy{"copy", 1, InferCopy, CopyGradient};
constinit const OpDefinition kReorder{"reorder", 1, InferCopy, nullptr};
constinit const OpDefinition kConstant{"constant", 1, InferConstant, nullptr};

ValueId Add(Graph& g, ValueId a, ValueId b, std::string_view name) {
  return AddBroadcast(g, "add", a, b, name);
}
ValueId Subtract(Graph& g, ValueId a, ValueId b, std::string_view name) {
  return AddBroadcast(g, "subtract", a, b, name);
}
ValueId Divide(Graph& g, ValueId a, ValueId b, std::string_view name) {
  return AddBroadcast(g, "divide", a, b, name);
}
ValueId Multiply(Graph& g, ValueId a, ValueId b, std::string_view name) {
  return AddBroadcast(g, "multiply", a, b, name);
}
ValueId Relu(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("relu", {}, {x}, name);
}
ValueId Gelu(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("gelu", {}, {x}, name);
}
ValueId ExactGelu(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("exact_gelu", {}, {x}, name);
}
ValueId Tanh(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("tanh", {}, {x}, name);
}

ValueId Sigmoid(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("sigmoid", {}, {x}, name);
}

ValueId Silu(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("silu", {}, {x}, name);
}

ValueId Scale(Graph& g, ValueId x, double factor, std::string_view name) {
  return g.AddOne("scale", {{"factor", factor}}, {x}, name);
}

ValueId Dropout(Graph& g, ValueId x, double rate, std::string_view name) {
  return g.AddOne("dropout", {{"rate", rate}, {"random_op", g.NextRandomOp()}}, {x}, name);
}

ValueId Constant(Graph& g, double value, const ValueSpec& spec, std::string_view name) {
  return g.AddOne("constant",
                  {{"value", value},
                   {"shape", ToInts(spec.shape)},
                   {"dtype", static_cast<int64_t>(spec.dtype)}},
                  {}, name);
}

ValueId SumTo(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  return g.AddOne("sum_to", {{"shape", ToInts(shape)}}, {x}, name);
}

ValueId SumAll(Graph& g, ValueId x, std::string_view name) {
  return SumTo(g, x, {}, name);
}

}  // namespace ringmaster::graph

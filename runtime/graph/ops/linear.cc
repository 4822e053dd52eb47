// Matrix products, and reshape.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"
#include "runtime/kernels/activation.h"

namespace ringmaster::graph {
namespace {

struct Matrix {
  int64_t rows, columns;
};

// All axes but the last as rows.
Matrix AsMatrix(const Shape& shape, bool transposed) {
  const Matrix m{shape.Product(0, shape.rank() - 1), shape.dim(-1)};
  return transposed ? Matrix{m.columns, m.rows} : m;
}

Specs InferMatMul(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 2));
  const Shape &a_shape = context.inputs[0].shape, &b_shape = context.inputs[1].shape;
  if (a_shape.rank() < 1 || b_shape.rank() < 1)
    return Misfit("both operands need at least one axis");
  const bool transpose_a = context.attributes.Int("transpose_a") != 0;
  const Matrix a = AsMatrix(a_shape, transpose_a);
  const Matrix b = AsMatrix(b_shape, context.attributes.Int("transpose_b") != 0);
  if (a.columns != b.rows) {
    return Misfit(
        fmt::format("cannot multiply [{}, {}] by [{}, {}]", a.rows, a.columns, b.rows, b.columns));
  }
  const Shape result = transpose_a ? Shape{a.rows, b.columns} : WithLast(a_shape, b.columns);
  return std::vector{ValueSpec{result, context.inputs[0].dtype}};
}

// MatMul or BatchMatMul.
using ProductFunction = ValueId (*)(Graph& g, ValueId a, ValueId b, bool transpose_a,
                                    bool transpose_b, std::string_view name);

// For C = A B: dA = dC B', dB = A' dC; each transposed operand swaps the roles.
template <ProductFunction kProduct>
void ProductGradient(GradientContext& c) {
  Graph& g = c.graph();
  const bool ta = c.attributes().Int("transpose_a") != 0,
             tb = c.attributes().Int("transpose_b") != 0;
  const ValueId a = c.input(0), b = c.input(1), dy = c.output_gradient(0);
  if (c.Needs(0)) {
    const ValueId da = ta ? kProduct(g, b, dy, tb, true, c.Name("a"))
                          : kProduct(g, dy, b, false, !tb, c.Name("a"));
    c.SetGradient(0, ReshapeIfNeeded(g, da, g.shape(a), c.Name("a_shape")));
  }
  if (c.Needs(1)) {
    const ValueId db = tb ? kProduct(g, dy, a, true, ta, c.Name("b"))
                          : kProduct(g, a, dy, !ta, false, c.Name("b"));
    c.SetGradient(1, ReshapeIfNeeded(g, db, g.shape(b), c.Name("b_shape")));
  }
}

Specs InferBatchMatMul(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 2));
  const Shape &a = context.inputs[0].shape, &b = context.inputs[1].shape;
  const int rank = a.rank();
  if (rank < 2 || b.rank() != rank)
    return Misfit("both operands need as many axes, two of them a matrix's");
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (a.dim(axis) != b.dim(axis)) return Misfit("the axes before the matrices' differ");
  }
  const bool ta = context.attributes.Int("transpose_a") != 0,
             tb = context.attributes.Int("transpose_b") != 0;
  const Matrix left{a.dim(ta ? -1 : -2), a.dim(ta ? -2 : -1)};
  const Matrix right{b.dim(tb ? -1 : -2), b.dim(tb ? -2 : -1)};
  if (left.columns != right.rows) {
    return Misfit(fmt::format("cannot multiply [{}, {}] by [{}, {}]", left.rows, left.columns,
                              right.rows, right.columns));
  }
  std::vector<int64_t> dims = ToInts(a);
  dims[dims.size() - 2] = left.rows;
  dims[dims.size() - 1] = right.columns;
  return std::vector{ValueSpec{Shape(dims), context.inputs[0].dtype}};
}

// With the attribute "relu", y is its positive part, as of convolutions; with the name of another
// activation's op, that activation. Passes add these when gradients are there already.
Specs InferLinear(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 3));
  RM_RETURN_IF_ERROR(CheckRank(context, 1, 2, "weight"));
  const Shape &x = context.inputs[0].shape, &weight = context.inputs[1].shape;
  if (x.rank() < 1 || x.dim(-1) != weight.dim(1)) {
    return Misfit(fmt::format("weight {} takes {} features, x is {}", weight.ToString(),
                              weight.dim(1), x.ToString()));
  }
  if (context.inputs.size() == 3)
    RM_RETURN_IF_ERROR(CheckShape(context, 2, {weight.dim(0)}, "bias"));
  return std::vector{ValueSpec{WithLast(x, weight.dim(0)), context.inputs[0].dtype}};
}

// Outputs: an activation of the layer's result, and the result, which the activation's gradient
// reads. Made by FuseActivation, when gradients are there already.
Specs InferLinearActivation(const InferContext& context) {
  const auto activation = kernels::ActivationIn(context.attributes);
  if (activation == kernels::Activation::kNone || activation == kernels::Activation::kRelu)
    return Misfit("asks for no activation that leaves the result beside it");
  RM_ASSIGN_OR_RETURN(std::vector<ValueSpec> result, InferLinear(context));
  result.push_back(result[0]);
  return result;
}

void LinearGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId dy = c.output_gradient(0);
  if (c.Needs(2)) c.SetGradient(2, SumTo(g, dy, g.shape(c.input(2)), c.Name("bias")));
  if (c.Needs(1)) c.SetGradient(1, MatMul(g, dy, c.input(0), true, false, c.Name("weight")));
  if (c.Needs(0)) c.SetGradient(0, MatMul(g, dy, c.input(1), false, false, c.Name("x")));
}

Specs InferReshape(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes 1 input");
  const Shape shape = ShapeAttribute(context.attributes);
  if (shape.elements() != context.inputs[0].shape.elements()) {
    return Misfit(fmt::format("{} has another number of elements", shape.ToString()));
  }
  return std::vector{ValueSpec{shape, context.inputs[0].dtype}};
}

void ReshapeGradient(GradientContext& c) {
  c.SetGradient(0,
                Reshape(c.graph(), c.output_gradient(0), c.graph().shape(c.input(0)), c.Name("x")));
}

}  // namespace

constinit const OpDefinition kMatMul{"matmul", 1, InferMatMul, ProductGradient<MatMul>};
constinit const OpDefinition kBatchMatMul{"batch_matmul", 1, InferBatchMatMul,
                                          ProductGradient<BatchMatMul>};
constinit const OpDefinition kLinear{"linear", 1, InferLinear, LinearGradient};
constinit const OpDefinition kLinearActivation{"linear_activation", 2, InferLinearActivation,
                                               nullptr};
constinit const OpDefinition kReshape{.type = "reshape",
                                      .output_count = 1,
                                      .infer = InferReshape,
                                      .gradient = ReshapeGradient,
                                      .alias = true};

ValueId MatMul(Graph& g, ValueId a, ValueId b, bool transpose_a, bool transpose_b,
               std::string_view name) {
  return g.AddOne("matmul",
                  {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}},
                  {a, b}, name);
}

ValueId BatchMatMul(Graph& g, ValueId a, ValueId b, bool transpose_a, bool transpose_b,
                    std::string_view name) {
  return g.AddOne("batch_matmul",
                  {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}},
                  {a, b}, name);
}

ValueId Linear(Graph& g, ValueId x, ValueId weight, ValueId bias, std::string_view name) {
  if (!bias.valid()) return g.AddOne("linear", {}, {x, weight}, name);
  return g.AddOne("linear", {}, {x, weight, bias}, name);
}

ValueId Reshape(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  return g.AddOne("reshape", {{"shape", ToInts(shape)}}, {x}, name);
}

ValueId Flatten(Graph& g, ValueId x, std::string_view name) {
  const Shape shape = g.shape(x);
  if (x.valid() && shape.rank() < 1)
    g.Fail(absl::InvalidArgumentError("flatten: a scalar has no batch axis"));
  if (!g.status().ok()) return {};
  return Reshape(g, x, {shape.dim(0), shape.Product(1, shape.rank())}, name);
}

}  // namespace ringmaster::graph

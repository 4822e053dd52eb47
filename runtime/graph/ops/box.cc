// Concatenation, slice and pad: copies of boxes. Slice and pad are each other's gradients.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

// Whether two shapes differ on `axis` at most.
bool AlikeBut(int axis, const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (i != axis && a.dim(i) != b.dim(i)) return false;
  }
  return true;
}

Specs InferConcat(const InferContext& context) {
  if (context.inputs.empty()) return Misfit("takes at least 1 input");
  const ValueSpec& first = context.inputs[0];
  const auto axis = static_cast<int>(context.attributes.Int("axis"));
  if (axis < 0 || axis >= first.shape.rank()) {
    return Misfit(fmt::format("axis {} is none of {}'s", axis, first.shape.ToString()));
  }
  std::vector<int64_t> dims = ToInts(first.shape);
  dims[static_cast<size_t>(axis)] = 0;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const ValueSpec& input = context.inputs[i];
    if (input.dtype != first.dtype || !AlikeBut(axis, input.shape, first.shape)) {
      return Misfit(fmt::format("input {} is {}, which differs from {} beside axis {}", i,
                                input.ToString(), first.ToString(), axis));
    }
    dims[static_cast<size_t>(axis)] += input.shape.dim(axis);
  }
  return std::vector{ValueSpec{Shape(dims), first.dtype}};
}

void ConcatGradient(GradientContext& c) {
  Graph& g = c.graph();
  const auto axis = static_cast<size_t>(c.attributes().Int("axis"));
  std::vector<int64_t> begin(static_cast<size_t>(g.shape(c.output(0)).rank()), 0);
  for (int i = 0; i < c.input_count(); ++i) {
    const Shape shape = g.shape(c.input(i));
    if (c.Needs(i)) {
      c.SetGradient(i, Slice(g, c.output_gradient(0), begin, shape, c.Name(std::to_string(i))));
    }
    begin[axis] += shape.dim(static_cast<int>(axis));
  }
}

Specs InferSlice(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes 1 input");
  const Shape &x = context.inputs[0].shape, size = ShapeAttribute(context.attributes);
  const auto begin = context.attributes.Ints("begin");
  if (size.rank() != x.rank() || begin.size() != static_cast<size_t>(x.rank())) {
    return Misfit("begin and size must have an extent for each axis of the input");
  }
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t from = begin[static_cast<size_t>(axis)];
    if (from < 0 || size.dim(axis) < 1 || size.dim(axis) > x.dim(axis) - from) {
      return Misfit(
          fmt::format("{} places from {} on do not lie in axis {}", size.dim(axis), from, axis));
    }
  }
  return std::vector{ValueSpec{size, context.inputs[0].dtype}};
}

void SliceGradient(GradientContext& c) {
  const Shape x = c.graph().shape(c.input(0)), size = c.graph().shape(c.output(0));
  const std::vector<int64_t> before = c.attributes().Ints("begin");
  std::vector<int64_t> after;
  for (int axis = 0; axis < x.rank(); ++axis) {
    after.push_back(x.dim(axis) - size.dim(axis) - before[static_cast<size_t>(axis)]);
  }
  c.SetGradient(0, Pad(c.graph(), c.output_gradient(0), before, after, c.Name("x")));
}

Specs InferPad(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes 1 input");
  const auto before = context.attributes.Ints("before"), after = context.attributes.Ints("after");
  std::vector<int64_t> dims = ToInts(context.inputs[0].shape);
  if (before.size() != dims.size() || after.size() != dims.size()) {
    return Misfit("before and after must have an extent for each axis of the input");
  }
  constexpr int64_t kMost = int64_t{1} << 40;  // so that the sums below do not overflow
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (std::min(before[axis], after[axis]) < 0 || std::max(before[axis], after[axis]) > kMost) {
      return Misfit(fmt::format("padding must lie in 0 to {}, got [{}] and [{}]", kMost,
                                fmt::join(before, ", "), fmt::join(after, ", ")));
    }
    dims[axis] += before[axis] + after[axis];
  }
  return std::vector{ValueSpec{Shape(dims), context.inputs[0].dtype}};
}

void PadGradient(GradientContext& c) {
  c.SetGradient(0, Slice(c.graph(), c.output_gradient(0), c.attributes().Ints("before"),
                         c.graph().shape(c.input(0)), c.Name("x")));
}

}  // namespace

constinit const OpDefinition kConcat{"concat", 1, InferConcat, ConcatGradient};
constinit const OpDefinition kSlice{"slice", 1, InferSlice, SliceGradient};
constinit const OpDefinition kPad{"pad", 1, InferPad, PadGradient};

ValueId Concat(Graph& g, std::span<const ValueId> inputs, int axis, std::string_view name) {
  return g.Add("concat", {{"axis", int64_t{axis}}}, inputs, 1, name)[0];
}

ValueId Slice(Graph& g, ValueId x, std::span<const int64_t> begin, const Shape& size,
              std::string_view name) {
  return g.AddOne(
      "slice",
      {{"begin", std::vector<int64_t>(begin.begin(), begin.end())}, {"shape", ToInts(size)}}, {x},
      name);
}

ValueId Pad(Graph& g, ValueId x, std::span<const int64_t> before, std::span<const int64_t> after,
            std::string_view name) {
  return g.AddOne("pad",
                  {{"before", std::vector<int64_t>(before.begin(), before.end())},
                   {"after", std::vector<int64_t>(after.begin(), after.end())}},
                  {x}, name);
}

}  // namespace ringmaster::graph

// Means and maxima over axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

// The shape with an extent of 1 in those axes.
absl::StatusOr<Shape> WithoutAxes(const Shape& shape, std::span<const int64_t> axes) {
  std::vector<int64_t> dims = ToInts(shape);
  std::vector<bool> gone(dims.size(), false);
  for (const int64_t axis : axes) {
    const int64_t place = axis < 0 ? axis + shape.rank() : axis;
    if (place < 0 || place >= shape.rank()) {
      return Misfit(fmt::format("there is no axis {} in {}", axis, shape.ToString()));
    }
    const auto at = static_cast<size_t>(place);
    if (gone[at])
      return Misfit(fmt::format("axes {} name one of {} twice", axes, shape.ToString()));
    gone[at] = true;
    dims[at] = 1;
  }
  return Shape(dims);
}

Specs InferMaxOver(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  RM_ASSIGN_OR_RETURN(const Shape shape,
                      WithoutAxes(context.inputs[0].shape, context.attributes.Ints("axes")));
  return std::vector{ValueSpec{shape, context.inputs[0].dtype}};
}

void MaxOverGradient(GradientContext& c) {
  c.SetGradient(0, c.graph().AddOne("max_over_grad", {},
                                    {c.input(0), c.output(0), c.output_gradient(0)}, c.Name("x")));
}

}  // namespace

constinit const OpDefinition kMaxOver{"max_over", 1, InferMaxOver, MaxOverGradient};
constinit const OpDefinition kMaxOverGrad{"max_over_grad", 1, InferLikeFirst, nullptr};

ValueId MaxOver(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name) {
  return g.AddOne("max_over", {{"axes", std::vector<int64_t>(axes.begin(), axes.end())}}, {x},
                  name);
}

ValueId MeanOver(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name) {
  if (!x.valid()) return {};
  const absl::StatusOr<Shape> shape = WithoutAxes(g.shape(x), axes);
  if (!shape.ok()) {
    g.Fail(Annotate(shape.status(), name.empty() ? "mean" : std::string(name)));
    return {};
  }
  const auto share =
      static_cast<double>(shape->elements()) / static_cast<double>(g.shape(x).elements());
  const std::string sum = name.empty() ? "" : std::string(name) + ".sum";
  return Scale(g, SumTo(g, x, *shape, sum), share, name);
}

}  // namespace ringmaster::graph

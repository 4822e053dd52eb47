// Axes in another order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

Specs InferTranspose(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes 1 input");
  const Shape& x = context.inputs[0].shape;
  const std::vector<int64_t> axes = context.attributes.Ints("axes");
  std::vector<bool> seen(static_cast<size_t>(x.rank()), false);
  std::vector<int64_t> dims;
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= x.rank() || seen[static_cast<size_t>(axis)]) break;
    seen[static_cast<size_t>(axis)] = true;
    dims.push_back(x.dim(static_cast<int>(axis)));
  }
  if (axes.size() != seen.size() || dims.size() != seen.size()) {
    return Misfit(fmt::format("[{}] is no order of {}'s {} axes", fmt::join(axes, ", "),
                              x.ToString(), x.rank()));
  }
  return std::vector{ValueSpec{Shape(dims), context.inputs[0].dtype}};
}

void TransposeGradient(GradientContext& c) {
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  c.SetGradient(0, Transpose(c.graph(), c.output_gradient(0), back, c.Name("x")));
}

}  // namespace

constinit const OpDefinition kTranspose{"transpose", 1, InferTranspose, TransposeGradient};

ValueId Transpose(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name) {
  return g.AddOne("transpose", {{"axes", std::vector<int64_t>(axes.begin(), axes.end())}}, {x},
                  name);
}

}  // namespace ringmaster::graph

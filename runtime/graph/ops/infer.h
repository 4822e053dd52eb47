// What the shape inference of many ops has in common. Internal to graph/ops/.
#ifndef RINGMASTER_RUNTIME_GRAPH_OPS_INFER_H_
#define RINGMASTER_RUNTIME_GRAPH_OPS_INFER_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {

using Specs = absl::StatusOr<std::vector<ValueSpec>>;

// Whether ops compute in it: f32 or f64.
bool IsReal(DType dtype);

// kInvalidArgument with a message made by fmt.
absl::Status Misfit(const std::string& message);

// That there are `least` to `most` inputs, and that all are of one real type (f32 or f64).
absl::Status CheckReal(const InferContext& context, size_t least, size_t most);

// The same of inputs [0, count), of more inputs.
absl::Status CheckRealPrefix(const InferContext& context, size_t count);

// That input i, called `what` in messages, has a shape.
absl::Status CheckShape(const InferContext& context, size_t i, const Shape& expected,
                        const std::string& what);

// That input i, called `what` in messages, has a rank.
absl::Status CheckRank(const InferContext& context, size_t i, int rank, const std::string& what);

// That input i holds i32.
absl::Status CheckIndices(const InferContext& context, size_t i, const std::string& what);

// One output like input 0: inference for elementwise ops of one input.
Specs InferSame(const InferContext& context);
// One output like the two inputs, which are alike: inference for elementwise gradients.
Specs InferSamePair(const InferContext& context);
// One output like input 0, whatever the others: gradients that start from a saved tensor.
Specs InferLikeFirst(const InferContext& context);
// One output of input 0's type with the shape in the attribute "shape".
Specs InferFromAttribute(const InferContext& context);

// The shape without its last axis, and with another last axis.
Shape WithoutLast(const Shape& shape);
Shape WithLast(const Shape& shape, int64_t last);

// A shape as an attribute's value, and back.
std::vector<int64_t> ToInts(const Shape& shape);
Shape ShapeAttribute(const Attributes& attributes, std::string_view name = "shape");

// Adds a reshape unless the value has the shape already.
ValueId ReshapeIfNeeded(Graph& g, ValueId x, const Shape& shape, std::string_view name);

// The places of a window that a byte can number.
inline constexpr int64_t kMostTaps = 256;

// The extents of a window's results over [.., H, W], {0, 0} when the window does not fit.
std::array<int64_t, 2> WindowResult(const Shape& x, std::array<int64_t, 2> window,
                                    const Attributes& attributes);
// That strides and dilations are positive and paddings not negative.
absl::Status CheckWindow(const Attributes& attributes);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_OPS_INFER_H_

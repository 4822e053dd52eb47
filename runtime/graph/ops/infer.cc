#include "runtime/graph/ops/infer.h"

#include <fmt/format.h>

#include "runtime/graph/ops.h"

namespace ringmaster::graph {

bool IsReal(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64;
}

absl::Status Misfit(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

absl::Status CheckReal(const InferContext& context, size_t least, size_t most) {
  const size_t count = context.inputs.size();
  if (count < least || count > most) {
    return Misfit(least == most ? fmt::format("takes {} inputs, got {}", least, count)
                                : fmt::format("takes {} to {} inputs, got {}", least, most, count));
  }
  return CheckRealPrefix(context, count);
}

absl::Status CheckRealPrefix(const InferContext& context, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!IsReal(context.inputs[i].dtype) || context.inputs[i].dtype != context.inputs[0].dtype) {
      return Misfit(fmt::format("input {} must be f32 or f64, and like input 0", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const InferContext& context, size_t i, const Shape& expected,
                        const std::string& what) {
  const Shape& got = context.inputs[i].shape;
  if (got == expected) return absl::OkStatus();
  return Misfit(fmt::format("{} must be {}, got {}", what, expected.ToString(), got.ToString()));
}

absl::Status CheckRank(const InferContext& context, size_t i, int rank, const std::string& what) {
  const Shape& got = context.inputs[i].shape;
  if (got.rank() == rank) return absl::OkStatus();
  return Misfit(fmt::format("{} must have {} axes, got {}", what, rank, got.ToString()));
}

absl::Status CheckIndices(const InferContext& context, size_t i, const std::string& what) {
  if (context.inputs[i].dtype == DType::kI32) return absl::OkStatus();
  return Misfit(fmt::format("{} must be i32, got {}", what, Name(context.inputs[i].dtype)));
}

Specs InferSame(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  return std::vector{context.inputs[0]};
}

Specs InferSamePair(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 2));
  RM_RETURN_IF_ERROR(CheckShape(context, 1, context.inputs[0].shape, "input 1"));
  return std::vector{context.inputs[0]};
}

Specs InferLikeFirst(const InferContext& context) {
  return std::vector{context.inputs[0]};
}

Specs InferFromAttribute(const InferContext& context) {
  return std::vector{ValueSpec{ShapeAttribute(context.attributes), context.inputs[0].dtype}};
}

Shape WithoutLast(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 1)));
}

Shape WithLast(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims = ToInts(shape);
  dims.back() = last;
  return Shape(dims);
}

std::vector<int64_t> ToInts(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

Shape ShapeAttribute(const Attributes& attributes, std::string_view name) {
  return Shape(attributes.Ints(name));
}

ValueId ReshapeIfNeeded(Graph& g, ValueId x, const Shape& shape, std::string_view name) {
  if (!x.valid() || g.shape(x) == shape) return x;
  return Reshape(g, x, shape, name);
}

std::array<int64_t, 2> WindowResult(const Shape& x, std::array<int64_t, 2> window,
                                    const Attributes& attributes) {
  const auto stride = attributes.Ints("stride"), padding = attributes.Ints("padding"),
             dilation = attributes.Ints("dilation");
  std::array<int64_t, 2> result{};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t apart = dilation.empty() ? 1 : dilation[i];
    // From the first tap of the first window to the last place: a division, as products overflow.
    const int64_t room = x.dim(static_cast<int>(i) + 2) + 2 * padding[i] - 1;
    if (window[i] < 1 || window[i] - 1 > room / apart) return {0, 0};
    result[i] = (room - (window[i] - 1) * apart) / stride[i] + 1;
  }
  return result;
}

absl::Status CheckWindow(const Attributes& attributes) {
  const auto stride = attributes.Ints("stride"), padding = attributes.Ints("padding"),
             dilation = attributes.Ints("dilation");
  for (size_t i = 0; i < 2; ++i) {
    if (stride[i] < 1) return Misfit("strides must be at least 1");
    if (padding[i] < 0) return Misfit("padding must not be negative");
    if (!dilation.empty() && dilation[i] < 1) return Misfit("dilations must be at least 1");
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::graph

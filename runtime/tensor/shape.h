// Shape: the extents of a tensor, outermost first, and ValueSpec: a shape with an element type and
// an order in memory.
//
// A value type that never allocates, so kernels may copy it freely.
#ifndef RINGMASTER_RUNTIME_TENSOR_SHAPE_H_
#define RINGMASTER_RUNTIME_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/tensor/dtype.h"

namespace ringmaster::tensor {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  // A scalar: rank 0, one element.
  Shape() = default;
  // At most kMaxRank extents.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // The extent of an axis; negative counts from the end (-1 is the last). The axis must exist.
  int64_t dim(int axis) const { return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // The number of elements; 1 for a scalar.
  int64_t elements() const { return Product(0, rank_); }
  // The product of the extents of axes [begin, end).
  int64_t Product(int begin, int end) const;

  // "[32, 1, 8, 8]"; "[]" for a scalar.
  std::string ToString() const;

  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// How the elements of [N, C, H, W] lie in memory. In blocks: those of so many neighbouring channels
// side by side, as [N, C / block, H, W, block] (oneDNN's nChw8c, nChw16c); C is a multiple of it.
enum class Layout : uint8_t { kRowMajor = 0, kBlocks8 = 8, kBlocks16 = 16 };

struct ValueSpec {
  Shape shape;
  DType dtype = DType::kF32;
  Layout layout = Layout::kRowMajor;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * SizeOf(dtype); }
  // "f32[32, 10]", "f32[32, 64, 7, 7] in blocks of 8"
  std::string ToString() const;
  bool operator==(const ValueSpec&) const = default;
};

}  // namespace ringmaster::tensor

#endif  // RINGMASTER_RUNTIME_TENSOR_SHAPE_H_

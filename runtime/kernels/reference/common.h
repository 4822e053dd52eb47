// What the reference kernels share. Internal to kernels/reference/.
#ifndef RINGMASTER_RUNTIME_KERNELS_REFERENCE_COMMON_H_
#define RINGMASTER_RUNTIME_KERNELS_REFERENCE_COMMON_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/device/parallel.h"
#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::reference {

using device::ParallelFor;
using tensor::DType;
using tensor::Shape;
using tensor::ValueSpec;

class ReferencePrimitive : public Primitive {
 public:
  std::string name() const override { return "reference"; }
};

// Kernel<float> or Kernel<double>, made from the node, by the type of its first output.
template <template <typename> class Kernel>
std::unique_ptr<Primitive> MakeReal(const NodeSpec& node) {
  switch (node.outputs[0].dtype) {
    case DType::kF32:
      return std::make_unique<Kernel<float>>(node);
    case DType::kF64:
      return std::make_unique<Kernel<double>>(node);
    default:
      return nullptr;
  }
}

inline const Shape& InShape(const NodeSpec& node, size_t i) {
  return node.inputs[i].shape;
}
inline const Shape& OutShape(const NodeSpec& node, size_t i) {
  return node.outputs[i].shape;
}

// Where the r-th row (all axes but the last) of a tensor of this shape begins in memory whose axes
// are so far apart.
inline int64_t RowOffset(const Shape& shape, const std::array<int64_t, Shape::kMaxRank>& strides,
                         int64_t r) {
  int64_t offset = 0;
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    offset += r % shape.dim(axis) * strides[static_cast<size_t>(axis)];
    r /= shape.dim(axis);
  }
  return offset;
}

// sum of body(i) over [0, n), added in double. The compiler may keep a fixed number of partial sums
// side by side, so the order is fixed by the build, not by the data or the threads.
template <typename Body>
double SumOver(int64_t n, const Body& body) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(body(i));
  return sum;
}

}  // namespace ringmaster::kernels::reference

#endif  // RINGMASTER_RUNTIME_KERNELS_REFERENCE_COMMON_H_

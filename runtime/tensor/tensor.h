// Tensor: a contiguous, row-major array on the CPU with a shape and an element type.
//
// It either owns its memory (Tensor(shape, dtype)) or is a view of memory that somebody else keeps
// alive (Tensor::View), such as a slot of the executor's arena. Movable, not copyable: copies are
// written out as Clone() or CopyFrom(). Not thread-safe.
//
//   Tensor weights({10, 64}, DType::kF32);          // zeroed
//   std::span<float> w = weights.span<float>();
//   Tensor same = weights.view();                   // valid while `weights` lives
#ifndef RINGMASTER_RUNTIME_TENSOR_TENSOR_H_
#define RINGMASTER_RUNTIME_TENSOR_TENSOR_H_

#include <cassert>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "runtime/device/memory.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::tensor {

class Tensor {
 public:
  // Holds nothing: data() is null.
  Tensor() = default;
  // Owns zeroed memory. Throws std::bad_alloc when there is none.
  Tensor(const Shape& shape, DType dtype);
  // Refers to `data`, which must hold the shape's elements, aligned for the type, and outlive the
  // view.
  static Tensor View(void* data, const Shape& shape, DType dtype);

  // The moved-from tensor holds nothing.
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept;

  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  const ValueSpec& spec() const { return spec_; }
  int64_t elements() const { return spec_.shape.elements(); }
  size_t bytes() const { return spec_.bytes(); }

  void* raw() { return data_; }
  const void* raw() const { return data_; }

  // The elements; T must match dtype().
  template <typename T>
  T* data() {
    assert(DTypeOf<T>() == dtype());
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    assert(DTypeOf<T>() == dtype());
    return static_cast<const T*>(data_);
  }
  template <typename T>
  std::span<T> span() {
    return {data<T>(), static_cast<size_t>(data_ == nullptr ? 0 : elements())};
  }
  template <typename T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(data_ == nullptr ? 0 : elements())};
  }

  // A view of the same memory.
  Tensor view() { return View(data_, spec_.shape, spec_.dtype); }
  // An owning copy.
  Tensor Clone() const;
  // Copies the elements of a tensor of the same shape and type, else kInvalidArgument.
  absl::Status CopyFrom(const Tensor& other);

 private:
  device::Buffer buffer_;
  void* data_ = nullptr;
  ValueSpec spec_{Shape{0}, DType::kF32};
};

}  // namespace ringmaster::tensor

#endif  // RINGMASTER_RUNTIME_TENSOR_TENSOR_H_

#include "runtime/tensor/tensor.h"

#include <cstring>

#include <fmt/format.h>

namespace ringmaster::tensor {

Tensor::Tensor(const Shape& shape, DType dtype)
    : buffer_(ValueSpec{shape, dtype}.bytes()), data_(buffer_.data()), spec_{shape, dtype} {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  buffer_ = std::move(other.buffer_);
  data_ = std::exchange(other.data_, nullptr);
  spec_ = std::exchange(other.spec_, ValueSpec{Shape{0}, DType::kF32});
  return *this;
}

Tensor Tensor::View(void* data, const Shape& shape, DType dtype) {
  Tensor t;
  t.data_ = data;
  t.spec_ = {shape, dtype};
  return t;
}

Tensor Tensor::Clone() const {
  Tensor copy(shape(), dtype());
  if (data_ != nullptr && bytes() > 0) std::memcpy(copy.data_, data_, bytes());
  return copy;
}

absl::Status Tensor::CopyFrom(const Tensor& other) {
  if (!(spec_ == other.spec_)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot copy {} into {}", other.spec_.ToString(), spec_.ToString()));
  }
  if (bytes() > 0) std::memcpy(data_, other.data_, bytes());
  return absl::OkStatus();
}

}  // namespace ringmaster::tensor

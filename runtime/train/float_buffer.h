// Floats in memory that is aligned for vector instructions; the address stays when it is moved.
#ifndef RINGMASTER_RUNTIME_TRAIN_FLOAT_BUFFER_H_
#define RINGMASTER_RUNTIME_TRAIN_FLOAT_BUFFER_H_

#include <cstddef>
#include <span>

#include "runtime/device/memory.h"

namespace ringmaster::train {

class FloatBuffer {
 public:
  FloatBuffer() = default;
  // `size` zeros. Throws std::bad_alloc when there is no memory.
  explicit FloatBuffer(size_t size) : buffer_(size * sizeof(float)), size_(size) {}

  std::span<float> span() { return {static_cast<float*>(buffer_.data()), size_}; }
  std::span<const float> span() const { return {static_cast<const float*>(buffer_.data()), size_}; }
  size_t size() const { return size_; }

 private:
  device::Buffer buffer_;
  size_t size_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_FLOAT_BUFFER_H_

// Memory of the CPU device: aligned for the widest vector instructions and for oneDNN.
//
// Used by tensors and by the executor's arena. Not a pool: the executor plans its memory once, so
// nothing is allocated in a training step. Not thread-safe; distinct buffers are independent.
#ifndef RINGMASTER_RUNTIME_DEVICE_MEMORY_H_
#define RINGMASTER_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <memory>

namespace ringmaster::device {

// Every buffer begins at a multiple of this many bytes: one cache line, and one AVX-512 register.
inline constexpr size_t kAlignment = 64;

// `bytes` rounded up to the next multiple of kAlignment.
constexpr size_t AlignUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// An owning block of zeroed, aligned memory. A page of a large one is taken, and zeroed, when it is
// first used; those of one that will all be used at once are taken together by pages.h.
// Movable, not copyable. The address stays the same when the Buffer is moved. Running out of memory
// throws std::bad_alloc, as a std::vector does, and so does asking for more than 2^40 bytes.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);

  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    size_t mapped;  // bytes of pages of its own; 0: the heap's
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_MEMORY_H_

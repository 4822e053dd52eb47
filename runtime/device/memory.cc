#include "runtime/device/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ringmaster::device {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t rounded = AlignUp(bytes);
  if (rounded < bytes) throw std::bad_alloc();
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, rounded);
  data_.reset(p);
}

void Buffer::Free::operator()(void* p) const {
  std::free(p);
}

}  // namespace ringmaster::device

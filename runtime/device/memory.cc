#include "runtime/device/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ringmaster::device {
namespace {

// Nobody means a larger one; where the system promises more memory than it has, asking would kill.
constexpr size_t kMaxBytes = size_t{1} << 40;

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxBytes) throw std::bad_alloc();
  const size_t rounded = AlignUp(bytes);
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, rounded);
  data_.reset(p);
}

void Buffer::Free::operator()(void* p) const {
  std::free(p);
}

}  // namespace ringmaster::device

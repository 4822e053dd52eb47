#include "runtime/device/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace ringmaster::device {
namespace {

// Nobody means a larger one; where the system promises more memory than it has, asking would kill.
constexpr size_t kMaxBytes = size_t{1} << 40;
// Of x86 and most others; where it is another, the hint below is of less use.
constexpr size_t kHugePage = size_t{2} << 20;
// From this size on what huge pages waste at the end does not count.
constexpr size_t kLarge = 4 * kHugePage;

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxBytes) throw std::bad_alloc();
  const size_t alignment = bytes < kLarge ? kAlignment : kHugePage;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded);
  if (p == nullptr) throw std::bad_alloc();
  // A hint: where there are no huge pages nothing is lost.
  if (bytes >= kLarge) (void)madvise(p, rounded, MADV_HUGEPAGE);
  std::memset(p, 0, rounded);
  data_.reset(p);
}

void Buffer::Free::operator()(void* p) const {
  std::free(p);
}

}  // namespace ringmaster::device

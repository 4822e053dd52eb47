#include "runtime/device/memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "runtime/device/pages.h"

namespace ringmaster::device {
namespace {

// Nobody means a larger one; where the system promises more memory than it has, asking would kill.
constexpr size_t kMaxBytes = size_t{1} << 40;
// From this size on what huge pages waste at the end does not count.
constexpr size_t kLarge = 4 * kHugePage;

// Fresh pages, which are zeros: whoever writes to one first has it zeroed then, so that threads
// share that work, and what is never used costs nothing. `bytes` is whole huge pages.
void* MapPages(size_t bytes) {
  void* const all =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(all);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
  char* const p = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(p + bytes, kHugePage - before);
  return p;
}

void* AllocateZeroed(size_t bytes) {
  void* const p = std::aligned_alloc(kAlignment, bytes);
  if (p == nullptr) throw std::bad_alloc();
  return std::memset(p, 0, bytes);
}

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxBytes) throw std::bad_alloc();
  if (bytes < kLarge) {
    data_ = std::unique_ptr<void, Free>(AllocateZeroed(AlignUp(bytes)), Free{.mapped = 0});
  } else {
    const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    data_ = std::unique_ptr<void, Free>(MapPages(whole), Free{.mapped = whole});
  }
}

void Buffer::Free::operator()(void* p) const {
  if (mapped > 0) {
    munmap(p, mapped);
  } else {
    std::free(p);
  }
}

}  // namespace ringmaster::device

#include "runtime/device/memory.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "runtime/device/parallel.h"

namespace ringmaster::device {
namespace {

// Nobody means a larger one; where the system promises more memory than it has, asking would kill.
constexpr size_t kMaxBytes = size_t{1} << 40;
// Of x86 and most others; where it is another, the hint below is of less use.
constexpr size_t kHugePage = size_t{2} << 20;
// From this size on what huge pages waste at the end does not count.
constexpr size_t kLarge = 4 * kHugePage;

// Makes a huge page's worth of fresh memory usable; says how long it took.
std::chrono::steady_clock::duration Touch(char* page) {
  constexpr size_t kSmallestPage = 4096;
  const auto before = std::chrono::steady_clock::now();
  for (size_t i = 0; i < kHugePage; i += kSmallestPage) static_cast<volatile char*>(page)[i] = 0;
  return std::chrono::steady_clock::now() - before;
}

// Takes huge pages as long as they come soon. A virtual machine that gives free memory back to its
// host does so in huge pages: each that it then fetches again takes it many times as long as small
// ones that it kept. The rest is small pages, which whoever writes to them first has zeroed. Where
// there are no huge pages, what is advised does nothing.
void TakeHugePages(char* begin, int64_t pages) {
  constexpr auto kSoon = std::chrono::milliseconds(2);  // 1 GB/s: any memory is zeroed faster
  std::atomic<bool> soon = true;
  ParallelFor(pages, kHugePage, [&](int64_t i) {
    char* const page = begin + static_cast<size_t>(i) * kHugePage;
    const bool huge = soon.load(std::memory_order_relaxed);
    (void)madvise(page, kHugePage, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (huge && Touch(page) > kSoon) soon.store(false, std::memory_order_relaxed);
  });
}

// Fresh pages, which are zeros. `bytes` is whole huge pages.
void* MapPages(size_t bytes) {
  void* const all =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(all);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
  char* const p = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(p + bytes, kHugePage - before);
  TakeHugePages(p, static_cast<int64_t>(bytes / kHugePage));
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

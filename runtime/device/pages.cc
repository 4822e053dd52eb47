#include "runtime/device/pages.h"

#include <atomic>
#include <chrono>
#include <cstdint>

#include <sys/mman.h>

#include "runtime/device/parallel.h"

namespace ringmaster::device {
namespace {

using Clock = std::chrono::steady_clock;

// Makes a huge page's worth of fresh memory usable; says how long it took.
Clock::duration Touch(char* page) {
  constexpr size_t kSmallestPage = 4096;
  const auto before = Clock::now();
  for (size_t i = 0; i < kHugePage; i += kSmallestPage) static_cast<volatile char*>(page)[i] = 0;
  return Clock::now() - before;
}

}  // namespace

void TakePages(const Buffer& buffer) {
  char* const begin = static_cast<char*>(buffer.data());
  if (reinterpret_cast<uintptr_t>(begin) % kHugePage != 0) return;
  // 1 GB/s: memory is zeroed faster. That a thread is kept off its processor for so long costs the
  // rest of one buffer its huge pages, and no more.
  constexpr auto kSoon = std::chrono::milliseconds(2);
  std::atomic<bool> soon = true;
  ParallelFor(static_cast<int64_t>(buffer.bytes() / kHugePage), kHugePage, [&](int64_t i) {
    char* const page = begin + static_cast<size_t>(i) * kHugePage;
    const bool huge = soon.load(std::memory_order_relaxed);
    // Where there are no huge pages, this does nothing.
    (void)madvise(page, kHugePage, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (huge && Touch(page) > kSoon) soon.store(false, std::memory_order_relaxed);
  });
}

}  // namespace ringmaster::device

#include "runtime/collectives/testing/scarce_memory.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace {

constexpr int64_t kPlenty = -1;
constexpr int64_t kHasFailed = -2;

// The requests that this thread is still granted.
thread_local int64_t granted = kPlenty;

}  // namespace

void* operator new(size_t size) {
  if (granted == 0) {
    granted = kHasFailed;
    throw std::bad_alloc();
  }
  if (granted > 0) --granted;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace ringmaster::collectives::testing {

void FailAfter(int64_t count) {
  granted = count;
}

bool HasFailed() {
  return std::exchange(granted, kPlenty) == kHasFailed;
}

}  // namespace ringmaster::collectives::testing

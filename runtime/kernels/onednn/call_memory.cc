#include "runtime/kernels/onednn/call_memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <omp.h>
#include <utility>

namespace ringmaster::kernels::onednn {
namespace {

// Blocks of one thread, cut one behind the other. The thread, while it lives, and each block that
// is not freed hold it; whoever lets go last gives it back.
class alignas(64) Slab {
 public:
  // oneDNN 2.6 takes 1 kB at most at once.
  static constexpr size_t kBytes = 4096;

  // Whether it is the caller's now.
  bool Acquire() {
    int none = 0;
    if (holders_.load(std::memory_order_relaxed) != 0) return false;
    if (!holders_.compare_exchange_strong(none, 1, std::memory_order_acquire)) return false;
    used_ = 0;
    return true;
  }

  void Release() { holders_.fetch_sub(1, std::memory_order_release); }

  // The owner's alone. Null where it is full.
  void* Take(size_t bytes) {
    if (holders_.load(std::memory_order_acquire) == 1) used_ = 0;
    if (bytes > kBytes - used_) return nullptr;
    void* const block = bytes_ + used_;
    used_ += (bytes + kGrid - 1) / kGrid * kGrid;
    holders_.fetch_add(1, std::memory_order_relaxed);
    return block;
  }

 private:
  // What operator new promises.
  static constexpr size_t kGrid = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  static_assert(kBytes % kGrid == 0);

  std::atomic<int> holders_{0};
  size_t used_ = 0;
  alignas(64) std::byte bytes_[kBytes] = {};
};

// Pages of those that nobody uses take no memory.
constinit std::array<Slab, kSlabs> slabs{};

// A thread's, from when it first needs one. Plain values, which stay what they are while the thread
// ends and others of its variables still ask for memory.
constinit thread_local Slab* own_slab = nullptr;
constinit thread_local bool does_without = false;  // for it ends, or all slabs were taken
constinit thread_local int own_calls = 0;
constinit std::atomic<int> calls{0};

struct EndOfThread {
  ~EndOfThread() {
    does_without = true;
    if (own_slab != nullptr) own_slab->Release();
  }
};

// A full one is left to its blocks.
bool Replace() {
  static thread_local const EndOfThread end;
  for (Slab& slab : slabs) {
    if (!slab.Acquire()) continue;
    if (own_slab != nullptr) own_slab->Release();
    own_slab = &slab;
    return true;
  }
  // Not to be looked for at each request.
  does_without = true;
  if (own_slab != nullptr) std::exchange(own_slab, nullptr)->Release();
  return false;
}

// The team's other threads have no CallMemory, and take memory as the caller does.
bool IsInCall() {
  return own_calls > 0 || (calls.load(std::memory_order_relaxed) > 0 && omp_in_parallel() != 0);
}

}  // namespace

CallMemory::CallMemory() {
  ++own_calls;
  calls.fetch_add(1, std::memory_order_relaxed);
}

CallMemory::~CallMemory() {
  calls.fetch_sub(1, std::memory_order_relaxed);
  --own_calls;
}

void* TakeCallMemory(size_t bytes) {
  if (does_without || bytes > Slab::kBytes || !IsInCall()) return nullptr;
  if (own_slab != nullptr) {
    if (void* const block = own_slab->Take(bytes)) return block;
  }
  return Replace() ? own_slab->Take(bytes) : nullptr;
}

bool FreeCallMemory(const void* block) {
  const auto offset =
      reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(slabs.data());
  if (offset >= sizeof(slabs)) return false;
  slabs[offset / sizeof(Slab)].Release();
  return true;
}

}  // namespace ringmaster::kernels::onednn

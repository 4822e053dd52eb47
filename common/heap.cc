#include "common/heap.h"

#include <malloc.h>

namespace ringmaster {
namespace {

constexpr int kArenas = 2;
// glibc's own first value. Set, it stays; else each large block that is freed raises it, up to 32
// MiB, and the next of that size is cut from a heap that it then keeps from shrinking.
constexpr int kLargeBytes = 128 * 1024;

}  // namespace

void UseHeapSparingly() {
  ::mallopt(M_ARENA_MAX, kArenas);
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
}

void ReturnFreeMemory() {
  ::malloc_trim(0);
}

}  // namespace ringmaster

// Counts what a program allocates, on all threads, by replacing the C library's malloc: for
// programs that say what they allocate, as tests of it and the benchmark of training do.
#ifndef RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_
#define RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

#include <cstdint>

namespace ringmaster {

// Those of malloc and its like so far, with operator new's and vendors' libraries'. In a
// sanitizer's build, which has a malloc of its own, only those of operator new.
int64_t CountAllocations();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsMalloc = false;
#else
inline constexpr bool kCountsMalloc = true;
#endif

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

// Counts what a program allocates, on all threads, by replacing operator new and the C library's
// malloc: for tests, each a program of its own.
#ifndef RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_
#define RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

#include <cstddef>
#include <cstdint>

namespace ringmaster {

// Those of operator new so far.
int64_t CountAllocations();

// The same and all others, of malloc and its like, as vendors' libraries make them too. In a
// sanitizer's build, which has a malloc of its own, only those of operator new.
int64_t CountMallocs();

// The bytes of the largest one since the last call.
size_t TakeLargestAllocation();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

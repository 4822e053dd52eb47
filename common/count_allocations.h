// Counts what a program allocates with operator new, on all threads, by replacing it: for tests,
// each a program of its own. What C libraries and vendors' take from malloc is not counted.
#ifndef RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_
#define RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

#include <cstddef>
#include <cstdint>

namespace ringmaster {

// So far.
int64_t CountAllocations();

// The bytes of the largest one since the last call.
size_t TakeLargestAllocation();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_COUNT_ALLOCATIONS_H_

// ParallelFor: the one way in which our own kernels use more than one thread.
#ifndef RINGMASTER_RUNTIME_DEVICE_PARALLEL_H_
#define RINGMASTER_RUNTIME_DEVICE_PARALLEL_H_

#include <cstdint>

#include "runtime/device/threads.h"

namespace ringmaster::device {

// Below this much work (in elements touched) a parallel region costs more than it saves.
inline constexpr int64_t kParallelWork = 16384;

// Calls body(i) for each i in [0, n), in contiguous static chunks over ThreadCount() threads;
// serially where that is one, or n * work_per_item is small. Blocks until all are done. `body` must
// write only what belongs to its own i: then the result does not depend on the number of threads.
// It must not throw.
template <typename Body>
void ParallelFor(int64_t n, int64_t work_per_item, const Body& body) {
  // GNU's OpenMP takes memory from the heap for each region of one thread.
  if (ThreadCount() == 1 || n * work_per_item < kParallelWork) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(ThreadCount())
  for (int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_PARALLEL_H_

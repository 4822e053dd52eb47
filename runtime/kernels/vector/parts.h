// Work in parts, and such that wants memory of its own in every thread. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_PARTS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/device/parallel.h"

namespace ringmaster::kernels::vector {

// How many parts of at most `size` there are of `count`.
constexpr int64_t PartsOf(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

// Calls body(i, scratch) for each i in [0, n), in one contiguous part for each thread, which has
// `floats` floats of `scratch`: ThreadCount() times as many in all. `work` is of one i, as
// ParallelFor counts it.
template <typename Body>
void ForParts(int64_t n, int64_t work, size_t floats, float* scratch, const Body& body) {
  const int64_t parts = std::min<int64_t>(n, device::ThreadCount());
  if (parts == 1) {  // no parallel region, so that what runs inside may have its own
    for (int64_t i = 0; i < n; ++i) body(i, scratch);
    return;
  }
  device::ParallelFor(parts, n * work / parts, [&](int64_t part) {
    for (int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i)
      body(i, scratch + static_cast<size_t>(part) * floats);
  });
}

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_PARTS_H_

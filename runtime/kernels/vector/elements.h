// Loops over all elements of tensors, eight at a time, in chunks of a fixed size that threads take
// side by side. Internal to this folder, for files that are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_ELEMENTS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_ELEMENTS_H_

#include <algorithm>
#include <cstdint>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

inline constexpr int64_t kChunk = 4096;  // elements

// Calls body(begin, count) for each chunk of [0, n).
template <typename Body>
inline void ForChunks(int64_t n, const Body& body) {
  device::ParallelFor(PartsOf(n, kChunk), kChunk, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk;
    body(begin, std::min(kChunk, n - begin));
  });
}

// Calls body(lanes, i) for each i in [0, n) at which eight elements begin.
template <typename Body>
inline void ForElements(int64_t n, const Body& body) {
  ForChunks(n, [&](int64_t begin, int64_t count) {
    ForLanes(count, [&](auto lanes, int64_t i) { body(lanes, begin + i); });
  });
}

// The sum of part(begin, count) over the chunks of [0, n), in their order, whichever thread has
// computed which. `parts` has room for one of each.
template <typename Result, typename Part>
inline Result SumOfChunks(int64_t n, Result* parts, const Part& part) {
  const int64_t chunks = PartsOf(n, kChunk);
  device::ParallelFor(chunks, kChunk, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk;
    parts[chunk] = part(begin, std::min(kChunk, n - begin));
  });
  Result sum{};
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += parts[chunk];
  return sum;
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_ELEMENTS_H_

// Copies of short rows. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_ROWS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_ROWS_H_

#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// `rows` rows of `count` floats, so far apart.
inline void CopyRows(int64_t rows, int64_t count, const float* from, int64_t from_step, float* to,
                     int64_t to_step) {
  for (int64_t row = 0; row < rows; ++row, from += from_step, to += to_step) {
    if (count < kLane) {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i];
      continue;
    }
    // The last vector overlaps the one before.
    const int64_t last = count - kLane;
    for (int64_t i = 0; i < last; i += kLane) _mm256_storeu_ps(to + i, _mm256_loadu_ps(from + i));
    _mm256_storeu_ps(to + last, _mm256_loadu_ps(from + last));
  }
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_ROWS_H_

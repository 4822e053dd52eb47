// Rows of pixels cut into phases, as tiles that overlap want them: a phase has every kStride-th
// pixel, so that one pixel of each of four neighbouring tiles lies side by side. Internal to this
// folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_ROWS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_ROWS_H_

#include <cstdint>
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// The first pixels of four tiles that are kStride, 2 or 4, apart: 4 * kStride floats become four of
// each phase, which begins `step` floats behind the one before.
template <int64_t kStride>
inline void SplitFour(const float* row, float* to, int64_t step) {
  __m128 a = _mm_loadu_ps(row), b = _mm_loadu_ps(row + 4);
  if constexpr (kStride == 2) {
    _mm_storeu_ps(to, _mm_shuffle_ps(a, b, 0x88));
    _mm_storeu_ps(to + step, _mm_shuffle_ps(a, b, 0xDD));
  } else {
    __m128 c = _mm_loadu_ps(row + 8), d = _mm_loadu_ps(row + 12);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + step, b);
    _mm_storeu_ps(to + 2 * step, c);
    _mm_storeu_ps(to + 3 * step, d);
  }
}

// The other way about.
template <int64_t kStride>
inline void JoinFour(const float* from, int64_t step, float* row) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + step);
  if constexpr (kStride == 2) {
    _mm_storeu_ps(row, _mm_unpacklo_ps(a, b));
    _mm_storeu_ps(row + 4, _mm_unpackhi_ps(a, b));
  } else {
    __m128 c = _mm_loadu_ps(from + 2 * step), d = _mm_loadu_ps(from + 3 * step);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(row, a);
    _mm_storeu_ps(row + 4, b);
    _mm_storeu_ps(row + 8, c);
    _mm_storeu_ps(row + 12, d);
  }
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_ROWS_H_

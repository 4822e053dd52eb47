// Sixteen floats at a time, as lanes.h has eight, for processors with AVX-512. Internal to this
// folder, for what is compiled for these.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WIDE_LANES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WIDE_LANES_H_

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx512f")

namespace ringmaster::kernels::vector {

inline constexpr int64_t kWideLane = 16;

// Those intrinsics that take a mask do for the compiler's sake, which takes the value behind the
// others' for one that was never set.
inline constexpr __mmask16 kAllLanes = 0xFFFF;
inline constexpr __mmask8 kAllDoubles = 0xFF;

// Eight floats in double.
inline __m512d LoadDoubles(const float* from) {
  return _mm512_maskz_cvtps_pd(kAllDoubles, _mm256_loadu_ps(from));
}

// The arrays are registers, so these become part of what calls them.

// Four vectors of four fours become those of their first elements, of their second ones, and so on,
// each four for itself.
[[gnu::always_inline]] inline void TransposeFours(__m512* v) {
  const __m512 low_ab = _mm512_maskz_unpacklo_ps(kAllLanes, v[0], v[1]),
               high_ab = _mm512_maskz_unpackhi_ps(kAllLanes, v[0], v[1]),
               low_cd = _mm512_maskz_unpacklo_ps(kAllLanes, v[2], v[3]),
               high_cd = _mm512_maskz_unpackhi_ps(kAllLanes, v[2], v[3]);
  v[0] = _mm512_maskz_shuffle_ps(kAllLanes, low_ab, low_cd, 0x44);
  v[1] = _mm512_maskz_shuffle_ps(kAllLanes, low_ab, low_cd, 0xEE);
  v[2] = _mm512_maskz_shuffle_ps(kAllLanes, high_ab, high_cd, 0x44);
  v[3] = _mm512_maskz_shuffle_ps(kAllLanes, high_ab, high_cd, 0xEE);
}

// A row of eight floats and another one.
inline __m512 LoadHalves(const float* low, const float* high) {
  const __m512 both = _mm512_castpd_ps(
      _mm512_maskz_broadcast_f64x4(kAllDoubles, _mm256_castps_pd(_mm256_loadu_ps(high))));
  return _mm512_castpd_ps(_mm512_mask_broadcast_f64x4(_mm512_castps_pd(both), 0x0F,
                                                      _mm256_castps_pd(_mm256_loadu_ps(low))));
}

// The other way.
inline void StoreHalves(__m512 v, float* low, float* high) {
  const __m512d halves = _mm512_castps_pd(v);
  _mm256_storeu_ps(low, _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(kAllDoubles, halves, 0)));
  _mm256_storeu_ps(high, _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(kAllDoubles, halves, 1)));
}

// The second and the fourth four of each of v's first four vectors change places with the first and
// the third of the vector four further on.
[[gnu::always_inline]] inline void SwapFours(__m512* v) {
  const __m512i firsts = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                seconds = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  for (int64_t i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(v[i]), b = _mm512_castps_pd(v[i + 4]);
    v[i] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, firsts, b));
    v[i + 4] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, seconds, b));
  }
}

// Sixteen rows of eight floats, as eight vectors of row i and row i + 8, become eight columns.
[[gnu::always_inline]] inline void RowsToColumns(__m512* v) {
  TransposeFours(v);
  TransposeFours(v + 4);
  SwapFours(v);
}

// The other way.
[[gnu::always_inline]] inline void ColumnsToRows(__m512* v) {
  SwapFours(v);
  TransposeFours(v);
  TransposeFours(v + 4);
}

// To the bits of Exp of eight.
inline __m512 Exp(__m512 x) {
  const __m512 least = _mm512_set1_ps(kExpLeast);
  const __m512 kept = _mm512_maskz_max_ps(
      kAllLanes, least, _mm512_maskz_min_ps(kAllLanes, _mm512_set1_ps(kExpMost), x));
  const __m512 whole =
      _mm512_maskz_roundscale_ps(kAllLanes, _mm512_mul_ps(kept, _mm512_set1_ps(kExpPerTwo)),
                                 _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(kTwoHigh), kept);
  r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(kTwoLow), r);
  __m512 p = _mm512_set1_ps(kExpPolynomial[0]);
  for (size_t i = 1; i < kExpPolynomial.size(); ++i)
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpPolynomial[i]));
  p = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0F));
  constexpr int kMantissa = 23, kBias = 127;
  const __m512i power = _mm512_maskz_slli_epi32(
      kAllLanes,
      _mm512_add_epi32(_mm512_maskz_cvtps_epi32(kAllLanes, whole), _mm512_set1_epi32(kBias)),
      kMantissa);
  return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), p,
                             _mm512_castsi512_ps(power));
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WIDE_LANES_H_

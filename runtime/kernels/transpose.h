// Eight by eight floats in registers, turned: for kernels that change which axis runs along a
// vector. Internal to kernels/, for files that look which processor they run on.
#ifndef RINGMASTER_RUNTIME_KERNELS_TRANSPOSE_H_
#define RINGMASTER_RUNTIME_KERNELS_TRANSPOSE_H_

#include <cstddef>
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels {

using EightRows = __m256[8];

// Rows become columns.
inline void Transpose(EightRows& v) {
  EightRows pairs, quads;
  for (size_t i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (size_t i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
  for (size_t i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

}  // namespace ringmaster::kernels

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_TRANSPOSE_H_

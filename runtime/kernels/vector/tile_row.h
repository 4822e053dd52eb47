// A row of a tile of AVX2's products: sixteen sums in two registers, and what becomes of them on
// their way to memory. Internal to this folder, for files that are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_TILE_ROW_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_TILE_ROW_H_

#include <immintrin.h>

#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

struct TileRow {
  __m256 low, high;

  // Of no products.
  TileRow() : low(_mm256_setzero_ps()), high(_mm256_setzero_ps()) {}

  // Adds `value` times sixteen elements of B.
  void MultiplyAdd(__m256 value, __m256 b_low, __m256 b_high) {
    low = _mm256_fmadd_ps(value, b_low, low);
    high = _mm256_fmadd_ps(value, b_high, high);
  }

  // To `to`, or added to what is there; then with `bias`, unless that is null; of which `relu`
  // keeps the positive part.
  void Store(float* to, bool accumulate, const float* bias, bool relu) {
    if (accumulate) Add(to);
    if (bias != nullptr) Add(bias);
    if (relu) low = PositivePart(low), high = PositivePart(high);
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + kLane, high);
  }

 private:
  void Add(const float* more) {
    low = _mm256_add_ps(_mm256_loadu_ps(more), low);
    high = _mm256_add_ps(_mm256_loadu_ps(more + kLane), high);
  }
};

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_TILE_ROW_H_

// GELU in its tanh form, of eight floats. With the logistic function s(v) = 1 / (1 + exp(-v)) it is
// x s(2 u), where u is the tanh's argument: the same value without the difference that a tanh near
// -1 would leave. Internal to this folder, for files that are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_GELU_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_GELU_H_

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

inline constexpr auto kGeluRoot = static_cast<float>(GeluBody::kRoot);
inline constexpr auto kGeluCubic = static_cast<float>(GeluBody::kCubic);

// s(2 u)
inline __m256 GeluGate(__m256 x, __m256 square) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 inner = _mm256_fmadd_ps(_mm256_set1_ps(kGeluCubic), square, one);
  const __m256 e = Exp(_mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(-2.0F * kGeluRoot), x), inner));
  return _mm256_div_ps(one, _mm256_add_ps(one, e));
}

inline __m256 GeluOf(__m256 x) {
  return _mm256_mul_ps(x, GeluGate(x, _mm256_mul_ps(x, x)));
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_GELU_H_

// What the max pooling kernels share: which of two elements is the larger, and which windows need
// no look at the image's edge. Internal to kernels/vector/.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_POOLING_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_POOLING_H_

#include <immintrin.h>
#include <memory>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::vector {

// Any window over images in rows. The node has to fit.
std::unique_ptr<Primitive> MaxPool2dOfRows(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// Where the second is to be taken: it is larger, or no number where the first is one. So the first
// of equals is kept, and what is no number is never lost.
inline __m256 SecondIsLarger(__m256 first, __m256 second) {
  return _mm256_and_ps(_mm256_cmp_ps(second, first, _CMP_NLE_UQ),
                       _mm256_cmp_ps(first, first, _CMP_ORD_Q));
}

inline __m128 SecondIsLarger(__m128 first, __m128 second) {
  return _mm_and_ps(_mm_cmp_ps(second, first, _CMP_NLE_UQ), _mm_cmp_ps(first, first, _CMP_ORD_Q));
}

inline bool SecondIsLarger(float first, float second) {
  return second > first || (second != second && first == first);
}

inline __m256 Larger(__m256 first, __m256 second) {
  return _mm256_blendv_ps(first, second, SecondIsLarger(first, second));
}

// The outputs of an axis that are taken eight at a time: those all of whose taps lie inside of the
// input, if these are eight.
inline Range Eights(const Axis& axis) {
  const auto inside = [&](int64_t o) {
    return axis.InputAt(o, 0) >= 0 && axis.InputAt(o, axis.window - 1) < axis.in;
  };
  Range all{0, 0};
  while (all.begin < axis.out && !inside(all.begin)) ++all.begin;
  all.end = all.begin;
  while (all.end < axis.out && inside(all.end)) ++all.end;
  if (all.end - all.begin < kLane) all.end = all.begin;
  return all;
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_POOLING_H_

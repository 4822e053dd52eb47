#include "runtime/collectives/compression/half_convert.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringmaster::collectives {

void ToHalvesPortably(const float* values, float scale, Float16* halves, size_t count) {
  for (size_t i = 0; i < count; ++i) halves[i] = ToFloat16(values[i] * scale);
}

void FromHalvesPortably(const Float16* halves, float scale, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = ToFloat(halves[i]) * scale;
}

#if defined(__x86_64__)
namespace {

constexpr size_t kLanes = 8;

bool HasHalves() {
  static const bool has = __builtin_cpu_supports("avx") != 0 && __builtin_cpu_supports("f16c") != 0;
  return has;
}

__attribute__((target("avx,f16c"))) size_t ToHalvesByProcessor(const float* values, float scale,
                                                               Float16* halves, size_t count) {
  const __m256 factor = _mm256_set1_ps(scale);
  const __m256 nan = _mm256_set1_ps(__builtin_nanf(""));
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
    const __m256 is_nan = _mm256_cmp_ps(scaled, scaled, _CMP_UNORD_Q);
    const __m256 clean = _mm256_blendv_ps(scaled, nan, is_nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                     _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t FromHalvesByProcessor(const Float16* halves, float scale,
                                                                 float* values, size_t count) {
  const __m256 factor = _mm256_set1_ps(scale);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i));
    _mm256_storeu_ps(values + i, _mm256_mul_ps(_mm256_cvtph_ps(bits), factor));
  }
  return i;
}

}  // namespace

void ToHalves(const float* values, float scale, Float16* halves, size_t count) {
  const size_t done = HasHalves() ? ToHalvesByProcessor(values, scale, halves, count) : 0;
  ToHalvesPortably(values + done, scale, halves + done, count - done);
}

void FromHalves(const Float16* halves, float scale, float* values, size_t count) {
  const size_t done = HasHalves() ? FromHalvesByProcessor(halves, scale, values, count) : 0;
  FromHalvesPortably(halves + done, scale, values + done, count - done);
}
#else
void ToHalves(const float* values, float scale, Float16* halves, size_t count) {
  ToHalvesPortably(values, scale, halves, count);
}

void FromHalves(const Float16* halves, float scale, float* values, size_t count) {
  FromHalvesPortably(halves, scale, values, count);
}
#endif

}  // namespace ringmaster::collectives

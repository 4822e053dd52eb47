// Eight floats at a time: loads and stores of whole vectors and of what is left behind them, sums
// in double, and the exponential; and loads of eight integers. Internal to this folder, for files
// that are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_LANES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_LANES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <limits>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

inline constexpr int64_t kLane = 8;

// All eight.
class Whole {
 public:
  __m256 Load(const float* from) const { return _mm256_loadu_ps(from); }
  __m256i Load(const int32_t* from) const {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  __m256 LoadOr(const float* from, __m256 /*rest*/) const { return _mm256_loadu_ps(from); }
  void Store(float* to, __m256 values) const { _mm256_storeu_ps(to, values); }
};

// The first `count` of eight floats or integers, 0 to 8. Memory behind them is not touched.
class Part {
 public:
  explicit Part(int64_t count)
      : count_(count),
        all_(count == kLane),
        mask_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks.data() + kLane - count))) {
  }

  // Zeros behind the last.
  __m256 Load(const float* from) const {
    return all_ ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask_);
  }
  __m256i Load(const int32_t* from) const { return _mm256_maskload_epi32(from, mask_); }
  // Those of `rest` behind the last.
  __m256 LoadOr(const float* from, __m256 rest) const {
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(from, mask_), _mm256_castsi256_ps(mask_));
  }
  // In up to three pieces: a store with a mask is some forty instructions on AMD's processors.
  void Store(float* to, __m256 values) const {
    if (all_) return _mm256_storeu_ps(to, values);
    __m128 rest = _mm256_castps256_ps128(values);
    if ((count_ & 4) != 0) {
      _mm_storeu_ps(to, rest);
      rest = _mm256_extractf128_ps(values, 1);
    }
    if ((count_ & 2) != 0) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + (count_ & 4)), _mm_castps_si128(rest));
      rest = _mm_movehl_ps(rest, rest);
    }
    if ((count_ & 1) != 0) _mm_store_ss(to + (count_ & 6), rest);
  }

 private:
  static constexpr std::array<int32_t, 16> kMasks = {-1, -1, -1, -1, -1, -1, -1, -1};

  int64_t count_;
  bool all_;
  __m256i mask_;
};

// Calls body(lanes, i) for each i in [0, n) at which eight elements begin, the last with a Part.
template <typename Body>
inline void ForLanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLane <= n; i += kLane) body(Whole(), i);
  if (i < n) body(Part(n - i), i);
}

// Eight numbers below 256 as bytes, the first one lowest, and the other way about.
inline uint64_t ToBytes(__m256i numbers) {
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(halves, halves)));
}
inline __m256i FromBytes(uint64_t bytes) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
}

inline __m256d LowDoubles(__m256 v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
inline __m256d HighDoubles(__m256 v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

// A sum in double, lane by lane.
class Sum {
 public:
  // Written out: the compiler makes its own for any processor.
  Sum() : low_(_mm256_setzero_pd()), high_(_mm256_setzero_pd()) {}

  void Add(__m256 v) {
    low_ = _mm256_add_pd(low_, LowDoubles(v));
    high_ = _mm256_add_pd(high_, HighDoubles(v));
  }
  void AddProduct(__m256 a, __m256 b) {
    low_ = _mm256_fmadd_pd(LowDoubles(a), LowDoubles(b), low_);
    high_ = _mm256_fmadd_pd(HighDoubles(a), HighDoubles(b), high_);
  }
  double Total() const {
    std::array<double, 4> sums;
    _mm256_storeu_pd(sums.data(), _mm256_add_pd(low_, high_));
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

 private:
  __m256d low_, high_;
};

inline void SetTo(double* to, __m256 v) {
  _mm256_storeu_pd(to, LowDoubles(v));
  _mm256_storeu_pd(to + 4, HighDoubles(v));
}

// Adds eight floats to eight doubles.
inline void AddTo(double* to, __m256 v) {
  _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), LowDoubles(v)));
  _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), HighDoubles(v)));
}

// The largest of n floats; minus infinity for none.
inline float Largest(const float* x, int64_t n) {
  const __m256 least = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  __m256 all = least;
  ForLanes(n, [&](auto lanes, int64_t i) { all = _mm256_max_ps(lanes.LoadOr(x + i, least), all); });
  std::array<float, kLane> each;
  _mm256_storeu_ps(each.data(), all);
  float largest = each[0];
  for (const float one : each) largest = one > largest ? one : largest;
  return largest;
}

// What is no number stays; a maximum would keep the sign of -0.
inline __m256 PositivePart(__m256 v) {
  return _mm256_and_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLE_UQ), v);
}

inline constexpr float kExpLeast = -87.33654F, kExpMost = 88.37F, kExpPerTwo = 1.44269504088896341F;
// ln 2 as the sum of two.
inline constexpr float kTwoHigh = 0.693359375F, kTwoLow = -2.12194440e-4F;
inline constexpr std::array kExpPolynomial = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                              4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};

// e^x. Cody and Waite's reduction by ln 2 in two parts and the polynomial of Cephes (Moshier:
// "Methods and programs for mathematical functions", 1989; single/expf.c); the result is off by
// less than 1e-7 of itself. 0 where it would be less than the smallest normal number; for x beyond
// 88.37 that number's own; what is no number stays so.
inline __m256 Exp(__m256 x) {
  const __m256 least = _mm256_set1_ps(kExpLeast);
  // The order of the operands lets pass what is no number.
  const __m256 kept = _mm256_max_ps(least, _mm256_min_ps(_mm256_set1_ps(kExpMost), x));
  const __m256 whole = _mm256_round_ps(_mm256_mul_ps(kept, _mm256_set1_ps(kExpPerTwo)),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(kTwoHigh), kept);
  r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(kTwoLow), r);
  __m256 p = _mm256_set1_ps(kExpPolynomial[0]);
  for (size_t i = 1; i < kExpPolynomial.size(); ++i)
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpPolynomial[i]));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  p = _mm256_add_ps(p, _mm256_set1_ps(1.0F));
  constexpr int kMantissa = 23, kBias = 127;
  const __m256i power = _mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(kBias)), kMantissa);
  return _mm256_and_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(power)),
                       _mm256_cmp_ps(x, least, _CMP_NLT_UQ));
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_LANES_H_

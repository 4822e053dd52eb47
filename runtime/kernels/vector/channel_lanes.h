// Neighbouring channels of a pixel, as arithmetic on images in blocks has them: eight in a vector,
// or sixteen in two, which are a whole line of the cache. Internal to this folder, for files that
// are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_CHANNEL_LANES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_CHANNEL_LANES_H_

#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

template <int64_t kLanes>
struct Channels;

template <>
struct Channels<8> {
  __m256 v;

  static Channels Zero() { return {_mm256_setzero_ps()}; }
  static Channels Load(const float* from) { return {_mm256_loadu_ps(from)}; }
  void Store(float* to) const { _mm256_storeu_ps(to, v); }
};

template <>
struct Channels<16> {
  Channels<8> low, high;

  static Channels Zero() { return {Channels<8>::Zero(), Channels<8>::Zero()}; }
  static Channels Load(const float* from) {
    return {Channels<8>::Load(from), Channels<8>::Load(from + kLane)};
  }
  void Store(float* to) const {
    low.Store(to);
    high.Store(to + kLane);
  }
};

using EightChannels = Channels<8>;
using SixteenChannels = Channels<16>;

inline EightChannels operator+(EightChannels a, EightChannels b) {
  return {_mm256_add_ps(a.v, b.v)};
}
inline SixteenChannels operator+(SixteenChannels a, SixteenChannels b) {
  return {a.low + b.low, a.high + b.high};
}
inline EightChannels operator-(EightChannels a, EightChannels b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
inline SixteenChannels operator-(SixteenChannels a, SixteenChannels b) {
  return {a.low - b.low, a.high - b.high};
}

// a * b + c, rounded once.
inline EightChannels MultiplyAdd(EightChannels a, EightChannels b, EightChannels c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline SixteenChannels MultiplyAdd(SixteenChannels a, SixteenChannels b, SixteenChannels c) {
  return {MultiplyAdd(a.low, b.low, c.low), MultiplyAdd(a.high, b.high, c.high)};
}

inline EightChannels PositivePart(EightChannels a) {
  return {PositivePart(a.v)};
}
inline SixteenChannels PositivePart(SixteenChannels a) {
  return {PositivePart(a.low), PositivePart(a.high)};
}

// a where y is positive, else 0.
inline EightChannels WherePositive(EightChannels y, EightChannels a) {
  return {_mm256_and_ps(a.v, _mm256_cmp_ps(y.v, _mm256_setzero_ps(), _CMP_GT_OQ))};
}
inline SixteenChannels WherePositive(SixteenChannels y, SixteenChannels a) {
  return {WherePositive(y.low, a.low), WherePositive(y.high, a.high)};
}

// A sum of each channel in double.
template <int64_t kLanes>
class ChannelSums;

template <>
class ChannelSums<8> {
 public:
  ChannelSums() : low_(_mm256_setzero_pd()), high_(_mm256_setzero_pd()) {}

  void Add(Channels<8> a) {
    low_ = _mm256_add_pd(low_, LowDoubles(a.v));
    high_ = _mm256_add_pd(high_, HighDoubles(a.v));
  }
  void AddProduct(Channels<8> a, Channels<8> b) {
    low_ = _mm256_fmadd_pd(LowDoubles(a.v), LowDoubles(b.v), low_);
    high_ = _mm256_fmadd_pd(HighDoubles(a.v), HighDoubles(b.v), high_);
  }
  // All of them.
  void Get(double* sums) const {
    _mm256_storeu_pd(sums, low_);
    _mm256_storeu_pd(sums + kLane / 2, high_);
  }

 private:
  __m256d low_, high_;
};

template <>
class ChannelSums<16> {
 public:
  // Written out, as is that of eight: the compiler makes its own for any processor.
  ChannelSums() : low_(), high_() {}

  void Add(Channels<16> a) {
    low_.Add(a.low);
    high_.Add(a.high);
  }
  void AddProduct(Channels<16> a, Channels<16> b) {
    low_.AddProduct(a.low, b.low);
    high_.AddProduct(a.high, b.high);
  }
  void Get(double* sums) const {
    low_.Get(sums);
    high_.Get(sums + kLane);
  }

 private:
  ChannelSums<8> low_, high_;
};

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_CHANNEL_LANES_H_

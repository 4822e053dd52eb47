#include "runtime/kernels/vector/split_pack.h"

#include <cstddef>
#include <immintrin.h>

#include "runtime/kernels/vector/wide_lanes.h"

#pragma GCC target("avx512f,avx512bw")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kHalf = kSplitTileLines;

// Rounded to bf16, halves away from zero.
__m512 Nearest(__m512 v) {
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(~0xFFFF)));
}

// Two vectors of numbers that are bf16, as pairs of 16 bits each.
__m512i Pairs(__m512 low, __m512 high) {
  const __m512i moved = _mm512_maskz_srli_epi32(0xFFFF, _mm512_castps_si512(low), 16);
  return _mm512_mask_blend_epi16(0xAAAAAAAA, moved, _mm512_castps_si512(high));
}

// Pairs of the three parts of two vectors, a row of a tile of each.
void StoreSplit(__m512 low, __m512 high, char* row) {
  for (int64_t part = 0; part < kSplitParts; ++part) {
    // The last rest has no more bits than bf16. A NaN stays one there, if rounding lost it before.
    const bool last = part == kSplitParts - 1;
    const __m512 low_part = last ? low : Nearest(low), high_part = last ? high : Nearest(high);
    _mm512_store_si512(row + part * kSplitPartBytes, Pairs(low_part, high_part));
    low = _mm512_sub_ps(low, low_part);
    high = _mm512_sub_ps(high, high_part);
  }
}

using Sixteen = __m512[kHalf];

// Rows become columns.
void Transpose(Sixteen& v) {
  Sixteen t;
  for (size_t i = 0; i < 16; i += 4) TransposeFours(v + i);
  for (size_t i = 0; i < 16; i += 8) {
    for (size_t j = 0; j < 4; ++j) {
      t[i + j] = _mm512_maskz_shuffle_f32x4(kAllLanes, v[i + j], v[i + j + 4], 0x88);
      t[i + j + 4] = _mm512_maskz_shuffle_f32x4(kAllLanes, v[i + j], v[i + j + 4], 0xDD);
    }
  }
  for (size_t j = 0; j < 8; ++j) {
    v[j] = _mm512_maskz_shuffle_f32x4(kAllLanes, t[j], t[j + 8], 0x88);
    v[j + 8] = _mm512_maskz_shuffle_f32x4(kAllLanes, t[j], t[j + 8], 0xDD);
  }
}

// A tile's vectors of up to sixteen floats: zeros where there are none, and behind their last
// float.
struct Vectors {
  const float* from;
  int64_t apart, count;
  __mmask16 mask;

  Vectors(const float* from, int64_t apart, int64_t count, int64_t floats)
      : from(from), apart(apart), count(count), mask(FirstOfSixteen(floats)) {}

  __m512 At(int64_t i) const {
    return i < count ? _mm512_maskz_loadu_ps(mask, from + i * apart) : _mm512_setzero_ps();
  }
};

void StoreSplit(const Vectors& low, const Vectors& high, char* to) {
  for (int64_t i = 0; i < kHalf; ++i) StoreSplit(low.At(i), high.At(i), to + i * kSplitRowBytes);
}

void StoreSplitTransposed(const Vectors& low, const Vectors& high, char* to) {
  Sixteen lows, highs;
  for (int64_t i = 0; i < kHalf; ++i) {
    lows[i] = low.At(i);
    highs[i] = high.At(i);
  }
  Transpose(lows);
  Transpose(highs);
  for (int64_t i = 0; i < kHalf; ++i) StoreSplit(lows[i], highs[i], to + i * kSplitRowBytes);
}

}  // namespace

void PackSplitStep(const SplitSide& side, int64_t lines, int64_t k, bool is_a, char* to) {
  const bool along_lines = side.lines.step == 1;
  for (int64_t half = 0; half < 2; ++half, to += kSplitTileBytes) {
    const int64_t left = lines - half * kHalf;
    const float* const from = side.data + half * side.lines.sixteen;
    const auto vectors = [&](int64_t part) {
      const float* const begin = from + part * side.inner.sixteen;
      const int64_t inner = k - part * kHalf;
      return along_lines ? Vectors(begin, side.inner.step, inner, left)
                         : Vectors(begin, side.lines.step, left, inner);
    };
    if (along_lines == is_a) {
      StoreSplitTransposed(vectors(0), vectors(1), to);
    } else {
      StoreSplit(vectors(0), vectors(1), to);
    }
  }
}

}  // namespace ringmaster::kernels::vector

// Windows of 2 x 2 that neither overlap nor leave an image in rows: eight neighbouring ones at a
// time, whose columns are registers. Internal to this folder, for files that are compiled for AVX2
// and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_TWO_BY_TWO_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_TWO_BY_TWO_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <vector>

#include "runtime/kernels/attributes.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/pooling.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::kernels::vector {

// Whether a pooling of x has such windows, and all of x lies in them.
inline bool IsTwoByTwo(const Attributes& pooling, const tensor::Shape& x) {
  const std::vector<int64_t> two{2, 2}, zero{0, 0};
  return pooling.Ints("window") == two && pooling.Ints("stride") == two &&
         pooling.Ints("padding") == zero && x.dim(2) % 2 == 0 && x.dim(3) % 2 == 0;
}

}  // namespace ringmaster::kernels::vector

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// Eight values whose order is 0 1 4 5 2 3 6 7, in order; and the other way about.
inline __m256 InOrder(__m256 v) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
}
inline __m256i InOrder(__m256i v) {
  return _mm256_permute4x64_epi64(v, 0xD8);
}

// The columns of eight windows lie in registers in the order in which a shuffle of two registers
// leaves them: 0 1 4 5 2 3 6 7.
struct Columns {
  __m256 left, right;
};

// Which place of each of eight windows of two rows of columns is meant: as masks, and 0 to 3 in row
// order as a number.
struct WindowPlaces {
  __m256 is_right, is_lower;

  // The first of the largest, in row order.
  static WindowPlaces OfLargest(const Columns& upper, const Columns& lower) {
    const __m256 right_above = SecondIsLarger(upper.left, upper.right),
                 right_below = SecondIsLarger(lower.left, lower.right);
    const __m256 is_lower = SecondIsLarger(_mm256_blendv_ps(upper.left, upper.right, right_above),
                                           _mm256_blendv_ps(lower.left, lower.right, right_below));
    return {_mm256_blendv_ps(right_above, right_below, is_lower), is_lower};
  }
  static WindowPlaces Of(__m256i taps) {
    const auto mask_of = [&](int shift) {
      return _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(taps, shift), 31));
    };
    return {mask_of(31), mask_of(30)};
  }

  __m256i taps() const {
    return _mm256_or_si256(
        _mm256_srli_epi32(_mm256_castps_si256(is_right), 31),
        _mm256_slli_epi32(_mm256_srli_epi32(_mm256_castps_si256(is_lower), 31), 1));
  }
  // What is there.
  __m256 Select(const Columns& upper, const Columns& lower) const {
    return _mm256_blendv_ps(_mm256_blendv_ps(upper.left, upper.right, is_right),
                            _mm256_blendv_ps(lower.left, lower.right, is_right), is_lower);
  }
  // A value for each window there, amid zeros: the upper row, and the lower one.
  Columns InUpper(__m256 values) const { return InRow(_mm256_andnot_ps(is_lower, values)); }
  Columns InLower(__m256 values) const { return InRow(_mm256_and_ps(is_lower, values)); }
  // The same of a row by itself.
  Columns InRow(__m256 values) const {
    return {_mm256_andnot_ps(is_right, values), _mm256_and_ps(is_right, values)};
  }
};

// Two times four neighbouring windows: what the second four see of a row begins `apart` floats
// behind what the first do, and their results `results_apart`.
class EightWindows {
 public:
  explicit EightWindows(int64_t apart = kLane, int64_t results_apart = kLane / 2)
      : apart_(apart), results_apart_(results_apart) {}

  Columns Load(const float* row) const {
    const __m256 low = _mm256_loadu_ps(row), high = _mm256_loadu_ps(row + apart_);
    return {_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xDD)};
  }
  void Store(float* row, const Columns& c) const {
    _mm256_storeu_ps(row, _mm256_unpacklo_ps(c.left, c.right));
    _mm256_storeu_ps(row + apart_, _mm256_unpackhi_ps(c.left, c.right));
  }
  __m256 LoadEach(const float* from) const {
    return InOrder(_mm256_loadu2_m128(from + results_apart_, from));
  }
  void StoreEach(float* to, __m256 values) const {
    _mm256_storeu2_m128(to + results_apart_, to, InOrder(values));
  }
  // Numbers below 256, which lie there as bytes.
  __m256i LoadBytes(const uint8_t* from) const {
    uint32_t low, high;
    std::memcpy(&low, from, sizeof(low));
    std::memcpy(&high, from + results_apart_, sizeof(high));
    return InOrder(FromBytes(uint64_t{high} << 32 | low));
  }
  void StoreBytes(uint8_t* to, __m256i numbers) const {
    const uint64_t bytes = ToBytes(InOrder(numbers));
    const auto low = static_cast<uint32_t>(bytes), high = static_cast<uint32_t>(bytes >> 32);
    std::memcpy(to, &low, sizeof(low));
    std::memcpy(to + results_apart_, &high, sizeof(high));
  }

 private:
  const int64_t apart_, results_apart_;
};

// Fewer neighbouring windows, 1 to 7.
class FewWindows {
 public:
  explicit FewWindows(int64_t count)
      : count_(count),
        all_(count),
        low_(std::min(kLane, 2 * count)),
        high_(std::max<int64_t>(0, 2 * count - kLane)) {}

  Columns Load(const float* row) const {
    const __m256 low = low_.Load(row), high = high_.Load(row + kLane);
    return {_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xDD)};
  }
  void Store(float* row, const Columns& c) const {
    low_.Store(row, _mm256_unpacklo_ps(c.left, c.right));
    high_.Store(row + kLane, _mm256_unpackhi_ps(c.left, c.right));
  }
  __m256 LoadEach(const float* from) const { return InOrder(all_.Load(from)); }
  void StoreEach(float* to, __m256 values) const { all_.Store(to, InOrder(values)); }
  __m256i LoadBytes(const uint8_t* from) const {
    uint64_t bytes = 0;
    ForPieces([&]<typename Piece>(Piece piece, int64_t at) {
      std::memcpy(&piece, from + at, sizeof(piece));
      bytes |= uint64_t{piece} << (8 * at);
    });
    return InOrder(FromBytes(bytes));
  }
  void StoreBytes(uint8_t* to, __m256i numbers) const {
    const uint64_t bytes = ToBytes(InOrder(numbers));
    ForPieces([&]<typename Piece>(Piece piece, int64_t at) {
      piece = static_cast<Piece>(bytes >> (8 * at));
      std::memcpy(to + at, &piece, sizeof(piece));
    });
  }

 private:
  // Calls body(an integer, its first byte's place) for integers that together are `count_` bytes.
  template <typename Body>
  void ForPieces(const Body& body) const {
    if ((count_ & 4) != 0) body(uint32_t{}, 0);
    if ((count_ & 2) != 0) body(uint16_t{}, count_ & 4);
    if ((count_ & 1) != 0) body(uint8_t{}, count_ & 6);
  }

  const int64_t count_;
  Part all_, low_, high_;
};

// Calls body(windows, row of the result, place in it) for all windows of the rows [begin, end) of
// such a width, each once: eights of a row, and what is left of it, which where that is four
// windows goes with those of the next row.
template <typename Body>
inline void ForWindowsOfRows(int64_t begin, int64_t end, int64_t width, const Body& body) {
  const int64_t whole = width / kLane * kLane, left = width - whole;
  const auto for_eights = [&](int64_t row) {
    for (int64_t place = 0; place < whole; place += kLane) body(EightWindows(), row, place);
  };
  int64_t row = begin;
  if (left == kLane / 2) {
    const EightWindows fours(4 * width, width);
    for (; row + 2 <= end; row += 2) {
      for_eights(row);
      for_eights(row + 1);
      body(fours, row, whole);
    }
  }
  for (; row < end; ++row) {
    for_eights(row);
    if (left > 0) body(FewWindows(left), row, whole);
  }
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_TWO_BY_TWO_H_

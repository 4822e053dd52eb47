// Images cut into tiles that overlap, and results into those of 4 x 4 that such tiles make: how
// many there are, and what moves them to where the transforms want them. Internal to this folder.
//
// A sample's tiles go row by row, and samples that are taken together make a group. Sixteen tiles
// of a group, one after the other, are a panel: a product's columns. So small images fill panels,
// too.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd_transforms.h"
#include "runtime/kernels/window.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// What all three kernels need, from the shapes of x, weight and y.
struct WinogradTiling {
  int64_t batch, in_channels, out_channels, taps;
  int64_t down = 0, across = 0;  // a sample's rows of tiles, and tiles of a row
  int64_t together = 1;          // samples of a group
  Axis h, w;

  WinogradTiling(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& y,
                 const Attributes& attributes)
      : batch(x.dim(0)), in_channels(x.dim(1)), out_channels(y.dim(1)), taps(weight.dim(2)) {
    const Window both = MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes);
    h = both.h;
    w = both.w;
    if (!HasTiles()) return;
    down = PartsOf(h.out, kTileSide);
    across = PartsOf(w.out, kTileSide);
    together = Together();
  }

  bool HasTiles() const {
    const auto is_plain = [&](const Axis& axis) { return axis.window == taps && axis.stride == 1; };
    return (taps == 3 || taps == 5) && is_plain(h) && is_plain(w);
  }

  int64_t tiles() const { return down * across; }  // of a sample
  int64_t panels(int64_t samples) const { return PartsOf(samples * tiles(), kTileColumns); }
  // Tiles of a panel.
  int64_t lanes(int64_t panel, int64_t samples) const {
    return std::min(kTileColumns, samples * tiles() - panel * kTileColumns);
  }
  int64_t image() const { return in_channels * h.in * w.in; }
  int64_t result() const { return out_channels * h.out * w.out; }
  int64_t padded_out() const { return PartsOf(out_channels, kTileColumns) * kTileColumns; }

  // Of one channel of a sample, as tiles see it: rows are read in fours.
  int64_t image_rows() const { return kTileSide * down + taps - 1; }
  int64_t image_width() const { return kTileSide * (across + 1); }
  int64_t padded_image() const { return image_rows() * image_width(); }
  int64_t result_width() const { return kTileSide * across; }
  int64_t padded_result() const { return kTileSide * down * result_width(); }
  // Whether that is what there is, so that nothing need be copied.
  bool IsWholeImage() const {
    return h.padding == 0 && w.padding == 0 && h.in == image_rows() && w.in == image_width();
  }
  bool IsWholeResult() const { return h.out == kTileSide * down && w.out == result_width(); }

 private:
  // So many groups at least, if there are so many samples, for as many threads; and tiles of one at
  // most, if there are several samples.
  static constexpr int64_t kLeastGroups = 2;
  static constexpr int64_t kMostTogether = 64;

  // The fewest samples whose tiles fill pairs of panels best.
  int64_t Together() const {
    const int64_t most = std::min(batch / kLeastGroups, kMostTogether / tiles());
    int64_t best = 1;
    const auto lanes = [&](int64_t samples) {
      return PartsOf(samples * tiles(), 2 * kTileColumns) * 2 * kTileColumns;
    };
    for (int64_t samples = 2; samples <= most; ++samples) {
      if (lanes(samples) * best < lanes(best) * samples) best = samples;
    }
    return best;
  }
};

// Planes of the samples of a group: from one sample, row and channel to the next.
template <typename Float>
struct Planes {
  Float* first;
  int64_t sample, row, channel;
};

// Of each of a panel's tiles, where its first float is in such planes.
using Places = std::array<int64_t, kTileColumns>;

// The panel's tiles, of which the last is repeated behind the last of `samples` samples.
template <typename Float>
Places PlacesOf(const WinogradTiling& t, int64_t panel, int64_t samples,
                const Planes<Float>& planes) {
  Places places;
  const int64_t first = panel * kTileColumns, end = samples * t.tiles();
  int64_t column = first % t.across, row = first / t.across % t.down, n = first / t.tiles();
  for (int64_t i = 0; i < kTileColumns; ++i) {
    places[i] = n * planes.sample + kTileSide * (row * planes.row + column);
    if (first + i + 1 >= end || ++column < t.across) continue;
    column = 0;
    if (++row < t.down) continue;
    row = 0;
    ++n;
  }
  return places;
}

// Four vectors of four floats, side by side with another four: rows become columns.
inline void TransposeFours(__m256 (&v)[4]) {
  const __m256 low_ab = _mm256_unpacklo_ps(v[0], v[1]), high_ab = _mm256_unpackhi_ps(v[0], v[1]);
  const __m256 low_cd = _mm256_unpacklo_ps(v[2], v[3]), high_cd = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(low_ab, low_cd, 0x44);
  v[1] = _mm256_shuffle_ps(low_ab, low_cd, 0xEE);
  v[2] = _mm256_shuffle_ps(high_ab, high_cd, 0x44);
  v[3] = _mm256_shuffle_ps(high_ab, high_cd, 0xEE);
}

// A panel's tiles of kSide x kSide floats, 4 to 8, of one channel -> kSide * kSide rows of sixteen.
template <int64_t kSide>
void GatherTiles(const float* plane, int64_t row, const Places& places, float* tiles) {
  for (int64_t i = 0; i < kSide; ++i, plane += row, tiles += kSide * kTileColumns) {
    for (int64_t lane = 0; lane < kTileColumns; lane += kLane) {
      const int64_t* at = places.data() + lane;
      for (int64_t j = 0; j < kSide; j += 4) {
        __m256 fours[4];
        for (int64_t k = 0; k < 4; ++k)
          fours[k] = _mm256_loadu2_m128(plane + at[k + 4] + j, plane + at[k] + j);
        TransposeFours(fours);
        for (int64_t k = 0; k < std::min<int64_t>(4, kSide - j); ++k)
          _mm256_storeu_ps(tiles + (j + k) * kTileColumns + lane, fours[k]);
      }
    }
  }
}

// The other way about: calls store(where in the plane, four floats) for those of the first `count`
// tiles. Of a plane's places that several tiles have, an earlier tile's comes first.
template <int64_t kSide, typename Store>
inline void ScatterTiles(const float* tiles, const Places& places, int64_t count, float* plane,
                         int64_t row, const Store& store) {
  for (int64_t i = kSide - 1; i >= 0; --i) {
    for (int64_t lane = 0; lane < count; lane += kLane) {
      const int64_t* at = places.data() + lane;
      for (int64_t j = (kSide - 1) / 4 * 4; j >= 0; j -= 4) {
        __m256 fours[4];
        for (int64_t k = 0; k < 4; ++k) {
          fours[k] = j + k < kSide
                         ? _mm256_loadu_ps(tiles + (i * kSide + j + k) * kTileColumns + lane)
                         : _mm256_setzero_ps();
        }
        TransposeFours(fours);
        float* const to = plane + i * row + j;
        for (int64_t k = 0; k < std::min<int64_t>(4, count - lane); ++k)
          store(to + at[k], _mm256_castps256_ps128(fours[k]));
        for (int64_t k = 4; k < std::min<int64_t>(8, count - lane); ++k)
          store(to + at[k], _mm256_extractf128_ps(fours[k - 4], 1));
      }
    }
  }
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_

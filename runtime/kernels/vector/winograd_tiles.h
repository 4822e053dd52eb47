// Images cut into tiles of 6 x 6 pixels that overlap, and results into those that such tiles make:
// how many there are, and what moves them to where the transforms want them. Internal to this
// folder.
//
// Four neighbouring tiles of a row, a quad, lie side by side, and four quads make a panel: a
// product's sixteen columns. Rows of tiles are filled up to whole quads with zeros.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_

#include <algorithm>
#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd_rows.h"
#include "runtime/kernels/vector/winograd_transforms.h"
#include "runtime/kernels/window.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// Tiles that lie side by side.
inline constexpr int64_t kQuad = 4;

// What all three kernels need, from the shapes of x, weight and y.
struct WinogradTiling {
  int64_t batch, in_channels, out_channels, taps;
  int64_t stride = 0;   // pixels from one tile to the next, and results of a tile on one axis
  int64_t down = 0;     // rows of tiles
  int64_t across = 0;   // tiles of a row, filled up
  int64_t panels = 0;   // of an image's tiles
  int64_t rows = 0;     // of the padded image
  int64_t columns = 0;  // of one phase of such a row
  Axis h, w;

  WinogradTiling(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& y,
                 const Attributes& attributes)
      : batch(x.dim(0)), in_channels(x.dim(1)), out_channels(y.dim(1)), taps(weight.dim(2)) {
    const Window both = MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes);
    h = both.h;
    w = both.w;
    if (!HasTiles()) return;
    stride = kPoints + 1 - taps;
    down = PartsOf(h.out, stride);
    across = PartsOf(w.out, stride * kQuad) * kQuad;
    panels = PartsOf(down * across, kTileColumns);
    rows = stride * (down - 1) + kPoints;
    columns = PartsOf(across + (kPoints - 1) / stride, kQuad) * kQuad;
  }

  bool HasTiles() const {
    const auto is_plain = [&](const Axis& axis) { return axis.window == taps && axis.stride == 1; };
    return (taps == 3 || taps == 5) && is_plain(h) && is_plain(w);
  }

  int64_t image() const { return in_channels * h.in * w.in; }
  int64_t result() const { return out_channels * h.out * w.out; }
  int64_t padded_out() const { return PartsOf(out_channels, kTileColumns) * kTileColumns; }
  // Of one channel.
  int64_t padded_width() const { return stride * columns; }
  int64_t padded_image() const { return rows * padded_width(); }
  int64_t padded_result() const { return stride * down * stride * across; }
  // Whether the result's rows and columns fill the tiles.
  bool IsWhole() const { return h.out == stride * down && w.out == stride * across; }

  // A panel's tiles of that many channels, at all points.
  static int64_t point_floats(int64_t channels) { return kSquarePoints * channels * kTileColumns; }
  int64_t quads() const { return down * across / kQuad; }
  int64_t quads_of(int64_t panel) const { return std::min(kQuad, quads() - panel * kQuad); }
};

// Moves tiles, kStride apart, between images and panels.
template <int64_t kStride>
class WinogradTiles {
 public:
  explicit WinogradTiles(const WinogradTiling& tiling) : t_(tiling) {}

  // Steps are read once: the compiler must take it that a vector's store may change them.

  // A channel of the image -> phases of its rows. Of `padded` the edges are zeros, and stay so.
  void Split(const float* x, float* padded, float* phases) const {
    CopyRows(t_.h.in, t_.w.in, x, t_.w.in, padded + FirstPixel(), t_.padded_width());
    ForFours([&](int64_t pixels, int64_t four, int64_t columns) {
      SplitFour<kStride>(padded + pixels, phases + four, columns);
    });
  }
  // The other way about.
  void Join(const float* phases, float* padded, float* x) const {
    ForFours([&](int64_t pixels, int64_t four, int64_t columns) {
      JoinFour<kStride>(phases + four, columns, padded + pixels);
    });
    CopyRows(t_.h.in, t_.w.in, padded + FirstPixel(), t_.padded_width(), x, t_.w.in);
  }

  // Phases -> the panel's tiles: kSquarePoints rows of sixteen. Behind the last quad it is
  // repeated.
  void Gather(int64_t panel, const float* phases, float* tiles) const {
    const int64_t width = t_.padded_width(), columns = t_.columns;
    for (int64_t quad = 0; quad < kQuad; ++quad) {
      const float* row = phases + PlaceOf(std::min(panel * kQuad + quad, t_.quads() - 1));
      float* to = tiles + quad * kQuad;
      for (int64_t i = 0; i < kPoints; ++i, row += width, to += kPoints * kTileColumns) {
        for (int64_t j = 0; j < kPoints; ++j)
          _mm_storeu_ps(to + j * kTileColumns,
                        _mm_loadu_ps(row + j % kStride * columns + j / kStride));
      }
    }
  }
  // Adds column `j` of the panel's tiles to the phases.
  void AddColumn(int64_t panel, int64_t j, const float* tiles, float* phases) const {
    const int64_t width = t_.padded_width(), quads = t_.quads_of(panel);
    phases += j % kStride * t_.columns + j / kStride;
    for (int64_t quad = 0; quad < quads; ++quad) {
      float* to = phases + PlaceOf(panel * kQuad + quad);
      const float* from = tiles + j * kTileColumns + quad * kQuad;
      for (int64_t i = 0; i < kPoints; ++i, to += width, from += kPoints * kTileColumns)
        _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), _mm_loadu_ps(from)));
    }
  }

  // A channel of the result -> the panel's tiles: kStride * kStride rows of sixteen. The result's
  // rows are `width` apart, and fill the tiles.
  void GatherResult(int64_t panel, const float* y, int64_t width, float* tiles) const {
    ForResultRows(panel, width, [&](int64_t at, int64_t tile) {
      SplitFour<kStride>(y + at, tiles + tile, kTileColumns);
    });
  }
  // The other way about.
  void ScatterResult(int64_t panel, const float* tiles, float* y, int64_t width) const {
    ForResultRows(panel, width, [&](int64_t at, int64_t tile) {
      JoinFour<kStride>(tiles + tile, kTileColumns, y + at);
    });
  }

 private:
  // Where a padded image has the image's first pixel.
  int64_t FirstPixel() const { return t_.h.padding * t_.padded_width() + t_.w.padding; }
  // Where phases have a quad's first pixel.
  int64_t PlaceOf(int64_t quad) const {
    const int64_t first = quad * kQuad;
    return first / t_.across * kStride * t_.padded_width() + first % t_.across;
  }

  // Calls body(where in the padded image, where in its phases, from phase to phase) for four pixels
  // of each phase after the other.
  template <typename Body>
  void ForFours(const Body& body) const {
    const int64_t rows = t_.rows, width = t_.padded_width(), columns = t_.columns;
    for (int64_t row = 0, at = 0; row < rows; ++row, at += width) {
      for (int64_t k = 0; k < columns; k += kQuad) body(at + kStride * k, at + k, columns);
    }
  }

  // Calls body(where in the result, where in its tiles) for each row of each quad.
  template <typename Body>
  void ForResultRows(int64_t panel, int64_t width, const Body& body) const {
    const int64_t quads = t_.quads_of(panel), across = t_.across;
    for (int64_t quad = 0; quad < quads; ++quad) {
      const int64_t first = (panel * kQuad + quad) * kQuad;
      const int64_t at = first / across * kStride * width + first % across * kStride;
      for (int64_t i = 0; i < kStride; ++i)
        body(at + i * width, i * kStride * kTileColumns + quad * kQuad);
    }
  }

  const WinogradTiling t_;
};

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TILES_H_

// Convolutions of 3 x 3 and 5 x 5 windows over images whose channels lie in blocks (tensor::Layout)
// with fewer multiplications. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_BLOCKS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/winograd_transforms.h"

namespace ringmaster::kernels::vector {

// Null where images lie otherwise, windows are others or move by more than one pixel, and where
// these kernels were not found to be faster than oneDNN's; forward also with a bias, and where an
// addend lies otherwise than the result. What comes out is about as exact as a sum of products with
// windows of 3 x 3, and off by up to 1.5e-5 of the largest with 5 x 5; an element that is no number
// makes such of others near it, too.
std::unique_ptr<Primitive> WinogradConv2dOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> WinogradConv2dBatchNormOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> WinogradConv2dGradInputOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> WinogradConv2dGradWeightOfBlocks(const NodeSpec& node);

// An image in blocks of `lanes` channels.
struct BlockImage {
  int64_t channels, height, width, lanes;

  int64_t pixels() const { return height * width; }
  // In floats: a row of a block, and a sample.
  int64_t row() const { return width * lanes; }
  int64_t sample() const { return channels * height * width; }
  // Where the block that begins with a channel has its first pixel.
  template <typename Float>
  Float* PlaneOf(Float* image, int64_t n, int64_t channel) const {
    return image + PlaneAt(n, channel);
  }
  int64_t PlaneAt(int64_t n, int64_t channel) const {
    return n * sample() + channel * height * width;
  }
};

// All tiles of a batch, in the order of samples, rows and columns, between the image that windows
// see and the one that they make.
struct BlockTiling {
  int64_t batch, taps;  // windows are of taps x taps, 3 or 5
  BlockImage seen, made;
  int64_t padding_down, padding_across;

  int64_t down() const { return (made.height + kTileSide - 1) / kTileSide; }
  int64_t across() const { return (made.width + kTileSide - 1) / kTileSide; }
  int64_t count() const { return batch * down() * across(); }

  // A tile's sample, and its first result.
  struct Tile {
    int64_t sample, row, column;
  };
  // Calls body(i, tile) for `count` tiles from `first` on, i from 0.
  template <typename Body>
  void ForTiles(int64_t first, int64_t count, const Body& body) const {
    const int64_t rows = down(), columns = across();
    int64_t column = first % columns, row = first / columns % rows, n = first / columns / rows;
    for (int64_t i = 0; i < count; ++i) {
      body(i, Tile{n, row * kTileSide, column * kTileSide});
      if (++column < columns) continue;
      column = 0;
      if (++row < rows) continue;
      row = 0;
      ++n;
    }
  }
};

// The tiling of a convolution's node; none where these kernels cannot compute it.
std::optional<BlockTiling> BlockTilingOf(const NodeSpec& node, const tensor::ValueSpec& x,
                                         const tensor::Shape& weight, const tensor::ValueSpec& y);
// Whether they are faster than oneDNN's for these tiles.
bool Pays(const BlockTiling& tiling);

// Transforms squares of images for windows of kTaps x kTaps, kLanes channels each.
template <int64_t kTaps, int64_t kLanes>
class BlockTransforms {
 public:
  BlockTransforms()
      : transforms_(kLanes == kTileColumns ? WinogradTransformsFor(kTaps)
                                           : WinogradTransformsOfEight(kTaps)) {}

  // What a tile sees of a block whose first pixel is `plane`, beyond which are zeros.
  void Image(const BlockTiling& t, const BlockTiling::Tile& tile, const float* plane, float* to,
             int64_t step) const {
    Square<kPoints>(transforms_.image, t.seen, tile.row - t.padding_down,
                    tile.column - t.padding_across, plane, to, step);
  }
  // A tile's gradients of results, of a block whose first pixel is `plane`, beyond which are zeros.
  void ResultGrad(const BlockTiling& t, const BlockTiling::Tile& tile, const float* plane,
                  float* to, int64_t step) const {
    Square<kTileSide>(transforms_.result_grad, t.made, tile.row, tile.column, plane, to, step);
  }
  // kTileSide x kTileSide results, row by row; at the next point `step` floats on.
  void Result(const float* points, int64_t step, float* results) const {
    transforms_.result(points, {kPoints * step, step}, results, kLanes);
  }

 private:
  static constexpr int64_t kPoints = PointsOf(kTaps);

  template <int64_t kSide>
  static void Square(WinogradTransform transform, const BlockImage& image, int64_t row,
                     int64_t column, const float* plane, float* to, int64_t step) {
    if (row >= 0 && column >= 0 && row + kSide <= image.height && column + kSide <= image.width) {
      transform(plane + row * image.row() + column * kLanes, {image.row(), kLanes}, to, step);
      return;
    }
    alignas(64) float square[kSide * kSide * kLanes] = {};
    const int64_t left = std::max<int64_t>(0, -column),
                  right = std::min(kSide, image.width - column);
    for (int64_t i = std::max<int64_t>(0, -row); i < std::min(kSide, image.height - row); ++i) {
      const float* from = plane + (row + i) * image.row() + (column + left) * kLanes;
      std::copy_n(from, std::max<int64_t>(0, right - left) * kLanes,
                  square + (i * kSide + left) * kLanes);
    }
    transform(square, {kSide * kLanes, kLanes}, to, step);
  }

  const WinogradTransforms& transforms_;
};

// The kernel for a tiling's windows and blocks.
template <template <int64_t kTaps, int64_t kLanes> typename Kernel, typename... Options>
std::unique_ptr<Primitive> MakeOfBlocks(const BlockTiling& tiling, Options... options) {
  const bool is_narrow = tiling.seen.lanes == 8;
  if (tiling.taps == 3) {
    if (is_narrow) return std::make_unique<Kernel<3, 8>>(tiling, options...);
    return std::make_unique<Kernel<3, 16>>(tiling, options...);
  }
  if (is_narrow) return std::make_unique<Kernel<5, 8>>(tiling, options...);
  return std::make_unique<Kernel<5, 16>>(tiling, options...);
}

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_BLOCKS_H_

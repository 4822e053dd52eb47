// Convolution of large images with many channels over tiles that make 4 x 4 results each
// (winograd_transforms.h): of 6 x 6 pixels for 3 x 3 weights, with 36 multiplications instead of
// 144, and of 8 x 8 for 5 x 5, with 64 instead of 400. A vector's lanes are channels of a block, so
// tiles are transformed where they lie.
//
// A block of tiles at a time: all its channels are transformed; then, for some channels of the
// result after the other, each of the 36 or 64 points has a matrix product of its own, tiles by
// channels by channels, and results are transformed back. A block is so large that what it is
// transformed to stays in the second cache, and that weights, which come from further away, are
// used often.
//
// The input's gradient is the same with weights turned around.
#include "runtime/kernels/vector/winograd_blocks.h"

#include <string>
#include <utility>

#include "runtime/device/parallel.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/vector/channel_lanes.h"
#include "runtime/kernels/vector/epilogue.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kColumns = kTileColumns;
// Between points lies so much more than is used: were they apart by a power of two, the lines of
// one tile would displace one another in the cache.
constexpr int64_t kGap = 16;

// Channels of the result that are multiplied together.
constexpr int64_t kMostChunk = 64;

// Where these kernels were faster than oneDNN's 2.6, for each of the three, on two cores with
// AVX-512: of 3 x 3 for the shapes of ResNet-50, VGG-16 and DenseNet-121, of 5 x 5 for AlexNet's,
// GoogLeNet's and others of 16 to 512 channels. Tiles are mostly filled, so that one multiplication
// at a point replaces this many, and so many that transforming the weights pays, of which the more
// are multiplied for each tile, the more lie outside the caches. Of 5 x 5, whose transforms are
// longer, all of them are so many for one point.
struct Limits {
  int64_t least_gain, most_weights_of_a_tile, least_products;
};
constexpr Limits kLimitsOfThree{2, 4096, 0}, kLimitsOfFive{4, 1024, 1 << 17};
constexpr int64_t kLeastTiles = 16;

// Where the weights of windows lie: from one channel that is made to the next, and from one that is
// seen to the next.
struct WeightStrides {
  int64_t made, seen;
  bool turned;  // taps backwards
};

template <int64_t kTaps, int64_t kLanes>
class WinogradBlocksKernel : public VectorPrimitive {
 public:
  WinogradBlocksKernel(const BlockTiling& tiling, const WeightStrides& strides, bool relu)
      : t_(tiling),
        strides_(strides),
        relu_(relu),
        block_(std::min(t_.count(), MostTiles(t_.seen.channels))),
        chunk_(std::min(t_.made.channels, kMostChunk)) {}

  std::string name() const override { return "vector/winograd"; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(weight_floats() + device::ThreadCount() * block_floats()) *
           sizeof(float);
  }

 protected:
  // What is made of the results besides ReLU. The epilogue is empty or has slopes. Where there are
  // `signs`, as many as results, y is 0 where they are not positive. They may lie where y does.
  struct Finish {
    Epilogue epilogue;
    const float* signs = nullptr;
  };

  void Convolve(const float* x, const float* weight, float* y, float* scratch,
                const Finish& finish = {}) const {
    TransformWeights(weight, scratch);
    const int64_t threads = device::ThreadCount(),
                  blocks = PartsOf(PartsOf(t_.count(), block_), threads) * threads;
    ForParts(blocks, block_ * kSquarePoints * t_.seen.channels * t_.made.channels / 16,
             static_cast<size_t>(block_floats()), scratch + weight_floats(),
             [&](int64_t i, float* memory) {
               const int64_t first = t_.count() * i / blocks, end = t_.count() * (i + 1) / blocks;
               if (first < end) MakeBlock(first, end - first, x, scratch, finish, y, memory);
             });
  }

 private:
  static constexpr int64_t kPoints = PointsOf(kTaps), kSquarePoints = SquarePointsOf(kTaps);

  static int64_t MostTiles(int64_t channels) { return kTaps == 5 || channels <= 64 ? 42 : 56; }

  // From one point to the next: weights, the block's tiles, their products.
  int64_t weight_step() const { return t_.seen.channels * t_.made.channels + kGap; }
  int64_t image_step() const { return block_ * t_.seen.channels + kGap; }
  int64_t product_step() const { return block_ * chunk_ + kGap; }
  int64_t weight_floats() const { return kSquarePoints * weight_step(); }
  int64_t block_floats() const { return kSquarePoints * (image_step() + product_step()); }

  // -> [point, panel of channels made, channel seen, 16].
  void TransformWeights(const float* weight, float* to) const {
    constexpr int64_t kSquareTaps = kTaps * kTaps;
    const WinogradTransforms& transforms = WinogradTransformsFor(kTaps);
    const int64_t seen = t_.seen.channels;
    device::ParallelFor(
        t_.made.channels / kColumns * seen, kSquarePoints * kColumns, [&](int64_t i) {
          alignas(64) float taps[kSquareTaps * kColumns];
          const float* from =
              weight + i / seen * kColumns * strides_.made + i % seen * strides_.seen;
          for (int64_t lane = 0; lane < kColumns; ++lane, from += strides_.made) {
            for (int64_t tap = 0; tap < kSquareTaps; ++tap) taps[tap * kColumns + lane] = from[tap];
          }
          constexpr Strides kForwards{kTaps * kColumns, kColumns},
              kBackwards{-kTaps * kColumns, -kColumns};
          strides_.turned ? transforms.weight(taps + (kSquareTaps - 1) * kColumns, kBackwards,
                                              to + i * kColumns, weight_step())
                          : transforms.weight(taps, kForwards, to + i * kColumns, weight_step());
        });
  }

  // The results of `count` tiles from `first` on.
  void MakeBlock(int64_t first, int64_t count, const float* x, const float* weights,
                 const Finish& finish, float* y, float* memory) const {
    const int64_t seen = t_.seen.channels, made = t_.made.channels;
    float* const products = memory + kSquarePoints * image_step();
    for (int64_t c = 0; c < seen; c += kLanes) {
      t_.ForTiles(first, count, [&](int64_t i, const BlockTiling::Tile& tile) {
        transforms_.Image(t_, tile, t_.seen.PlaneOf(x, tile.sample, c), memory + i * seen + c,
                          image_step());
      });
    }
    const Product product{.m = count, .k = seen, .a = {seen, 1}};
    for (int64_t begin = 0; begin < made; begin += chunk_) {
      const int64_t channels = std::min(chunk_, made - begin);
      for (int64_t point = 0; point < kSquarePoints; ++point) {
        product.RunPacked(memory + point * image_step(),
                          weights + point * weight_step() + begin * seen,
                          products + point * product_step(), chunk_, false,
                          {channels / kColumns, kColumns * seen, kColumns});
      }
      for (int64_t c = 0; c < channels; c += kLanes) {
        t_.ForTiles(first, count, [&](int64_t i, const BlockTiling::Tile& tile) {
          const int64_t plane = t_.made.PlaneAt(tile.sample, begin + c);
          MakeTile(tile, products + i * chunk_ + c,
                   {finish.epilogue.At(begin + c, plane),
                    finish.signs == nullptr ? nullptr : finish.signs + plane},
                   y + plane);
        });
      }
    }
  }

  // Of a block of channels, whose results and what they are finished with begin at `plane`.
  void MakeTile(const BlockTiling::Tile& tile, const float* products, const Finish& finish,
                float* plane) const {
    alignas(64) float results[kTileSide * kTileSide * kLanes];
    transforms_.Result(products, product_step(), results);
    const int64_t rows = std::min(kTileSide, t_.made.height - tile.row),
                  columns = std::min(kTileSide, t_.made.width - tile.column);
    const int64_t at = tile.row * t_.made.row() + tile.column * kLanes;
    if (finish.epilogue.slope != nullptr) {
      WriteNormalised(finish.epilogue, results, rows, columns, at, plane);
      return;
    }
    if (relu_) {  // what is no number stays, as in the op of its own
      for (float& result : results) result = result <= 0.0F ? 0.0F : result;
    }
    float* to = plane + at;
    for (int64_t row = 0; row < rows; ++row, to += t_.made.row()) {
      float* from = results + row * kTileSide * kLanes;
      if (finish.signs != nullptr)
        KeepWherePositive(finish.signs + at + row * t_.made.row(), columns, from);
      if (columns == kTileSide) {
        std::copy_n(from, kTileSide * kLanes, to);
      } else {
        std::copy_n(from, columns * kLanes, to);
      }
    }
  }

  // The same with the epilogue, while a pixel's channels are in registers.
  void WriteNormalised(const Epilogue& epilogue, const float* results, int64_t rows,
                       int64_t columns, int64_t at, float* plane) const {
    using Lanes = Channels<kLanes>;
    const Lanes slope = Lanes::Load(epilogue.slope), offset = Lanes::Load(epilogue.offset);
    for (int64_t row = 0; row < rows; ++row, at += t_.made.row()) {
      for (int64_t i = 0; i < columns * kLanes; i += kLanes) {
        const float* from = results + row * kTileSide * kLanes + i;
        Lanes y = MultiplyAdd(Lanes::Load(from), slope, offset);
        if (epilogue.addend != nullptr) y = y + Lanes::Load(epilogue.addend + at + i);
        (relu_ ? PositivePart(y) : y).Store(plane + at + i);
      }
    }
  }

  // A whole tile's row has a length that the compiler knows.
  static void KeepWherePositive(const float* signs, int64_t columns, float* results) {
    if (columns == kTileSide) {
      for (int64_t i = 0; i < kTileSide * kLanes; ++i)
        results[i] = ReluGradBody()(signs[i], results[i]);
    } else {
      for (int64_t i = 0; i < columns * kLanes; ++i)
        results[i] = ReluGradBody()(signs[i], results[i]);
    }
  }

  const BlockTiling t_;
  const WeightStrides strides_;
  const bool relu_;
  const int64_t block_, chunk_;  // tiles and channels of the result that are multiplied together
  const BlockTransforms<kTaps, kLanes> transforms_;
};

// (x, weight) -> y, or its positive part.
template <int64_t kTaps, int64_t kLanes>
class WinogradBlocksConv2dKernel : public WinogradBlocksKernel<kTaps, kLanes> {
 public:
  WinogradBlocksConv2dKernel(const BlockTiling& t, bool relu)
      : WinogradBlocksKernel<kTaps, kLanes>(
            t, {kTaps * kTaps * t.seen.channels, kTaps * kTaps, false}, relu) {}

  void Run(const Arguments& a) override {
    this->Convolve(a.in<float>(0), a.in<float>(1), a.out<float>(0), static_cast<float*>(a.scratch));
  }
};

// (x, weight, gamma, beta, mean, variance[, addend]) -> y.
template <int64_t kTaps, int64_t kLanes>
class WinogradBlocksConv2dBatchNormKernel : public WinogradBlocksKernel<kTaps, kLanes> {
 public:
  WinogradBlocksConv2dBatchNormKernel(const BlockTiling& t, bool relu,
                                      const BatchNormEpilogue& norm)
      : Base(t, {kTaps * kTaps * t.seen.channels, kTaps * kTaps, false}, relu), norm_(norm) {}

  size_t scratch_bytes() const override { return Base::scratch_bytes() + norm_.bytes(); }
  void Run(const Arguments& a) override {
    float* const scratch = static_cast<float*>(a.scratch);
    const Epilogue epilogue = norm_.Make(a, scratch + Base::scratch_bytes() / sizeof(float));
    this->Convolve(a.in<float>(0), a.in<float>(1), a.out<float>(0), scratch, {epilogue});
  }

 private:
  using Base = WinogradBlocksKernel<kTaps, kLanes>;

  const BatchNormEpilogue norm_;
};

// (dy, weight, x or nothing) -> dx, with x, which a ReLU made, only where that is positive.
template <int64_t kTaps, int64_t kLanes>
class WinogradBlocksGradInputKernel : public WinogradBlocksKernel<kTaps, kLanes> {
 public:
  WinogradBlocksGradInputKernel(const BlockTiling& t, bool has_x)
      : WinogradBlocksKernel<kTaps, kLanes>(
            t, {kTaps * kTaps, kTaps * kTaps * t.made.channels, true}, false),
        has_x_(has_x) {}

  // A tile's places of x are read before those of dx are written, and by nobody else.
  bool MayOverwrite(int input, int output) const override { return input == 2 && output == 0; }

  void Run(const Arguments& a) override {
    this->Convolve(a.in<float>(0), a.in<float>(1), a.out<float>(0), static_cast<float*>(a.scratch),
                   {.signs = has_x_ ? a.in<float>(2) : nullptr});
  }

 private:
  const bool has_x_;
};

}  // namespace

std::optional<BlockTiling> BlockTilingOf(const NodeSpec& node, const tensor::ValueSpec& x,
                                         const tensor::Shape& weight, const tensor::ValueSpec& y) {
  if (!FitsInAnyLayout(node) || x.layout != y.layout || x.layout == tensor::Layout::kRowMajor)
    return std::nullopt;
  const int64_t taps = weight.dim(2);
  const Window window = MakeWindow(x.shape, y.shape, weight.dim(2), weight.dim(3), node.attributes);
  const auto takes = [taps](const Axis& axis) {
    return axis.window == taps && axis.stride == 1 && axis.dilation == 1 && axis.padding < taps;
  };
  if ((taps != 3 && taps != 5) || !takes(window.h) || !takes(window.w) ||
      node.attributes.Int("groups") > 1)
    return std::nullopt;
  if (x.shape.dim(1) % kColumns != 0 || y.shape.dim(1) % kColumns != 0) return std::nullopt;
  const auto image = [](const tensor::ValueSpec& spec) {
    return BlockImage{spec.shape.dim(1), spec.shape.dim(2), spec.shape.dim(3),
                      static_cast<int64_t>(spec.layout)};
  };
  return BlockTiling{x.shape.dim(0), taps, image(x), image(y), window.h.padding, window.w.padding};
}

bool Pays(const BlockTiling& t) {
  const Limits& limits = t.taps == 3 ? kLimitsOfThree : kLimitsOfFive;
  // Without padding, or with much, the windows of 5 x 5 that one of the images has see zeros, which
  // oneDNN leaves out; as many as the smaller one's do not.
  const int64_t pixels = t.taps == 3 ? t.made.pixels() : std::min(t.seen.pixels(), t.made.pixels());
  const int64_t tiles = t.count(), weights = t.seen.channels * t.made.channels;
  return t.taps * t.taps * t.batch * pixels >= limits.least_gain * SquarePointsOf(t.taps) * tiles &&
         tiles >= std::max(kLeastTiles, weights / limits.most_weights_of_a_tile) &&
         tiles * weights >= limits.least_products;
}

std::unique_ptr<Primitive> WinogradConv2dOfBlocks(const NodeSpec& node) {
  const auto tiling = BlockTilingOf(node, node.inputs[0], node.inputs[1].shape, node.outputs[0]);
  if (!tiling || !Pays(*tiling)) return nullptr;
  // A bias says that no batch norm comes behind, but ReLU or max pooling at once. The result's
  // rounding, some 1e-6, then turns over more of them than sums of products do: VGG-16's gradient
  // was 2.3 times as far from the one in double as PyTorch's in f32, and twice is allowed.
  if (node.inputs.size() == 3) return nullptr;
  const bool relu = node.attributes.Int("relu") != 0;
  return MakeOfBlocks<WinogradBlocksConv2dKernel>(*tiling, relu);
}

std::unique_ptr<Primitive> WinogradConv2dBatchNormOfBlocks(const NodeSpec& node) {
  const auto tiling = BlockTilingOf(node, node.inputs[0], node.inputs[1].shape, node.outputs[0]);
  if (!tiling || !Pays(*tiling) || !BatchNormEpilogue::Takes(node)) return nullptr;
  const bool relu = node.attributes.Int("relu") != 0;
  return MakeOfBlocks<WinogradBlocksConv2dBatchNormKernel>(*tiling, relu, BatchNormEpilogue(node));
}

std::unique_ptr<Primitive> WinogradConv2dGradInputOfBlocks(const NodeSpec& node) {
  auto tiling = BlockTilingOf(node, node.outputs[0], node.inputs[1].shape, node.inputs[0]);
  if (!tiling) return nullptr;
  std::swap(tiling->seen, tiling->made);
  tiling->padding_down = tiling->taps - 1 - tiling->padding_down;
  tiling->padding_across = tiling->taps - 1 - tiling->padding_across;
  if (!Pays(*tiling)) return nullptr;
  const bool has_x = node.inputs.size() == 3;
  if (has_x && node.inputs[2].layout != node.outputs[0].layout) return nullptr;
  return MakeOfBlocks<WinogradBlocksGradInputKernel>(*tiling, has_x);
}

}  // namespace ringmaster::kernels::vector

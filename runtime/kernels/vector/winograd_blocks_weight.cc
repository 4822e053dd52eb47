// The gradient of weights over the same tiles (winograd_blocks.cc): at each point the tiles of x
// times those of dy, summed over all tiles in order.
//
// A block of tiles of both is transformed by all threads, then each thread multiplies at points of
// its own, so that each sum has one thread and one order.
#include <string>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/winograd_blocks.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kColumns = kTileColumns;
constexpr int64_t kGap = 16;  // as in winograd_blocks.cc

// (x, dy) -> dweight
template <int64_t kTaps, int64_t kLanes>
class WinogradBlocksGradWeightKernel : public VectorPrimitive {
 public:
  explicit WinogradBlocksGradWeightKernel(const BlockTiling& tiling)
      : t_(tiling), block_(std::min(t_.count(), kMostTiles)) {}

  std::string name() const override { return "vector/winograd"; }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(kSquarePoints * (sum_step() + image_step() + gradient_step())) *
           sizeof(float);
  }

  void Run(const Arguments& a) override {
    float* const sums = static_cast<float*>(a.scratch);
    float* const images = sums + kSquarePoints * sum_step();
    float* const gradients = images + kSquarePoints * image_step();
    for (int64_t first = 0; first < t_.count(); first += block_) {
      const int64_t count = std::min(block_, t_.count() - first);
      Transform(first, count, a.in<float>(0), a.in<float>(1), images, gradients);
      Multiply(count, images, gradients, first > 0, sums);
    }
    Finish(sums, a.out<float>(0));
  }

 private:
  static constexpr int64_t kPoints = PointsOf(kTaps), kSquarePoints = SquarePointsOf(kTaps);
  // The transforms of 5 x 5 enlarge what a sum loses, which is the less the fewer are added at
  // once.
  static constexpr int64_t kMostTiles = kTaps == 3 ? 112 : 56;
  // Tiles that one thread transforms at a time.
  static constexpr int64_t kPiece = 14;

  // From one point to the next.
  int64_t sum_step() const { return t_.seen.channels * t_.made.channels + kGap; }
  int64_t image_step() const { return block_ * t_.seen.channels + kGap; }
  int64_t gradient_step() const { return block_ * t_.made.channels + kGap; }

  // -> images [point, tile, channel] and gradients [point, panel of channels, tile, 16].
  void Transform(int64_t first, int64_t count, const float* x, const float* dy, float* images,
                 float* gradients) const {
    const int64_t seen = t_.seen.channels, made = t_.made.channels;
    const int64_t channel_blocks = (seen + made) / kLanes;
    // Threads share out tiles: those of x cost more than those of dy.
    device::ParallelFor(
        PartsOf(count, kPiece) * channel_blocks, kPiece * kSquarePoints * kLanes, [&](int64_t i) {
          const int64_t begin = i / channel_blocks * kPiece,
                        tiles = std::min(kPiece, count - begin),
                        channel = i % channel_blocks * kLanes;
          if (channel < seen) {
            t_.ForTiles(first + begin, tiles, [&](int64_t k, const BlockTiling::Tile& tile) {
              transforms_.Image(t_, tile, t_.seen.PlaneOf(x, tile.sample, channel),
                                images + (begin + k) * seen + channel, image_step());
            });
          } else {
            const int64_t c = channel - seen;
            float* const panel = gradients + c / kColumns * block_ * kColumns + c % kColumns;
            t_.ForTiles(first + begin, tiles, [&](int64_t k, const BlockTiling::Tile& tile) {
              transforms_.ResultGrad(t_, tile, t_.made.PlaneOf(dy, tile.sample, c),
                                     panel + (begin + k) * kColumns, gradient_step());
            });
          }
        });
  }

  // -> sums [point, channel of x, channel of dy], or more to what is there.
  void Multiply(int64_t count, const float* images, const float* gradients, bool accumulate,
                float* sums) const {
    const int64_t seen = t_.seen.channels, made = t_.made.channels;
    const Product product{.m = seen, .k = count, .a = {1, seen}};
    device::ParallelFor(kSquarePoints, count * seen * made / 4, [&](int64_t point) {
      product.RunPacked(images + point * image_step(), gradients + point * gradient_step(),
                        sums + point * sum_step(), made, accumulate,
                        {made / kColumns, block_ * kColumns, kColumns});
    });
  }

  void Finish(const float* sums, float* dweight) const {
    constexpr int64_t kSquareTaps = kTaps * kTaps;
    const WinogradTransforms& transforms = WinogradTransformsFor(kTaps);
    const int64_t seen = t_.seen.channels, made = t_.made.channels;
    device::ParallelFor(made / kColumns * seen, kSquarePoints * kColumns, [&](int64_t i) {
      alignas(64) float taps[kSquareTaps * kColumns];
      const int64_t o = i / seen * kColumns, c = i % seen;
      transforms.weight_grad(sums + c * made + o, {kPoints * sum_step(), sum_step()}, taps,
                             kColumns);
      float* to = dweight + (o * seen + c) * kSquareTaps;
      for (int64_t lane = 0; lane < kColumns; ++lane, to += seen * kSquareTaps) {
        for (int64_t tap = 0; tap < kSquareTaps; ++tap) to[tap] = taps[tap * kColumns + lane];
      }
    });
  }

  const BlockTiling t_;
  const int64_t block_;  // tiles that are transformed and multiplied together
  const BlockTransforms<kTaps, kLanes> transforms_;
};

}  // namespace

std::unique_ptr<Primitive> WinogradConv2dGradWeightOfBlocks(const NodeSpec& node) {
  const auto tiling = BlockTilingOf(node, node.inputs[0], node.outputs[0].shape, node.inputs[1]);
  if (!tiling || !Pays(*tiling)) return nullptr;
  return MakeOfBlocks<WinogradBlocksGradWeightKernel>(*tiling);
}

}  // namespace ringmaster::kernels::vector

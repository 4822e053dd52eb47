// What Winograd's kernels of small images in rows share (winograd.cc, winograd_weight.cc): when
// they pay, their memory, and the transforms of the images. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_KERNEL_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_KERNEL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd_tiles.h"
#include "runtime/kernels/vector/winograd_transforms.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// Whether so many multiplications are saved that the transforms pay.
bool Pays(const WinogradTiling& tiling);

// For kTaps x kTaps weights: the tiling, and how tiles of images are transformed.
template <int64_t kTaps>
class WinogradKernel : public VectorPrimitive {
 public:
  std::string name() const override { return "vector/winograd"; }

 protected:
  static constexpr int64_t kPoints = PointsOf(kTaps), kSquarePoints = SquarePointsOf(kTaps);
  static constexpr int64_t kLanes = kTileColumns;
  // Channels that take each step together.
  static constexpr int64_t kGroup = 4;
  // What a tile has at all points is written at once; were points apart by a power of two, its
  // lines would displace one another in the cache.
  static constexpr int64_t kGap = kLanes;

  explicit WinogradKernel(const WinogradTiling& tiling)
      : t_(tiling), transforms_(WinogradTransformsFor(kTaps)) {}

  int64_t groups() const { return PartsOf(t_.batch, t_.together); }
  int64_t weight_floats() const { return kSquarePoints * t_.in_channels * t_.padded_out(); }
  // What a thread moves tiles through: those of some channels, and their padded planes.
  int64_t moving_floats() const {
    return kGroup *
           (kSquarePoints * kLanes + t_.together * std::max(t_.padded_image(), t_.padded_result()));
  }
  // From one point of a panel's tiles to the next, of that many channels, and of all points.
  static int64_t point_step(int64_t channels) { return channels * kLanes + kGap; }
  static int64_t panel_floats(int64_t channels) { return kSquarePoints * point_step(channels); }

  // Where the transforms of a group's tiles go, at the first point: of the next panel, channel and
  // point.
  struct PointSteps {
    int64_t panel, channel, point;
  };

  // The tiles of a group's images. `moving` has moving_floats().
  void TransformImages(int64_t samples, const float* x, float* moving, float* to,
                       const PointSteps& steps) const {
    const int64_t plane = t_.h.in * t_.w.in, padded = t_.padded_image();
    const bool whole = t_.IsWholeImage();
    float* const copies = moving + kGroup * kSquarePoints * kLanes;
    if (!whole) std::fill_n(copies, kGroup * samples * padded, 0.0F);
    ForChannels(t_.in_channels, [&](int64_t first, int64_t count) {
      const float* images = x + first * plane;
      if (!whole) {
        ForPlanes(samples, count, [&](int64_t n, int64_t c) {
          CopyRows(t_.h.in, t_.w.in, images + n * t_.image() + c * plane, t_.w.in,
                   copies + (c * samples + n) * padded + FirstPixel(), t_.image_width());
        });
      }
      const Planes<const float> planes =
          whole ? Planes<const float>{images, t_.image(), t_.w.in, plane}
                : Planes<const float>{copies, padded, t_.image_width(), samples * padded};
      TransformPlanes<kPoints>(transforms_.image, samples, count, planes, moving,
                               to + first * steps.channel, steps);
    });
  }

  // The tiles of squares of kSide of some channels.
  template <int64_t kSide>
  void TransformPlanes(WinogradTransform transform, int64_t samples, int64_t channels,
                       const Planes<const float>& planes, float* tiles, float* to,
                       const PointSteps& steps) const {
    constexpr int64_t kFloats = kSide * kSide * kLanes;
    for (int64_t panel = 0; panel < t_.panels(samples); ++panel, to += steps.panel) {
      const Places places = PlacesOf(t_, panel, samples, planes);
      for (int64_t c = 0; c < channels; ++c) {
        GatherTiles<kSide>(planes.first + c * planes.channel, planes.row, places,
                           tiles + c * kFloats);
      }
      for (int64_t c = 0; c < channels; ++c) {
        transform(tiles + c * kFloats, {kSide * kLanes, kLanes}, to + c * steps.channel,
                  steps.point);
      }
    }
  }

  // Where a padded image has the image's first pixel.
  int64_t FirstPixel() const { return t_.h.padding * t_.image_width() + t_.w.padding; }

  // Calls body(first, count) for a few channels after the other.
  template <typename Body>
  static void ForChannels(int64_t channels, const Body& body) {
    for (int64_t first = 0; first < channels; first += kGroup)
      body(first, std::min(kGroup, channels - first));
  }
  template <typename Body>
  static void ForPlanes(int64_t samples, int64_t channels, const Body& body) {
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t c = 0; c < channels; ++c) body(n, c);
    }
  }

  const WinogradTiling t_;
  const WinogradTransforms& transforms_;
};

// The kernel of a node with such shapes; null where it has no tiles, or they do not pay.
template <template <int64_t> typename Kernel, typename... Options>
std::unique_ptr<Primitive> MakeWinograd(const NodeSpec& node, const tensor::Shape& x,
                                        const tensor::Shape& weight, const tensor::Shape& y,
                                        Options... options) {
  const WinogradTiling tiling(x, weight, y, node.attributes);
  if (!tiling.HasTiles() || !Pays(tiling)) return nullptr;
  if (tiling.taps == 3) return std::make_unique<Kernel<3>>(tiling, options...);
  return std::make_unique<Kernel<5>>(tiling, options...);
}

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_KERNEL_H_

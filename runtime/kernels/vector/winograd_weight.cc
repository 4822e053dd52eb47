// The gradient of weights over the tiles of small images in rows (winograd.cc).
#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd.h"
#include "runtime/kernels/vector/winograd_kernel.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// (x, dy) -> dweight: at each point the tiles of x times those of dy, summed over tiles and samples
// in order, in a part for each thread that are added at the end: as large as the weights at all
// points, they would not stay in the cache if there were more. One thread makes two, as two do.
template <int64_t kTaps>
class WinogradGradWeightKernel : public WinogradKernel<kTaps> {
 public:
  explicit WinogradGradWeightKernel(const WinogradTiling& t)
      : Base(t),
        parts_(std::min(this->groups(), std::clamp<int64_t>(device::ThreadCount(), 2, kMostParts))),
        inner_(t.panels(t.together) * kLanes) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * this->weight_floats() + device::ThreadCount() * floats()) *
           sizeof(float);
  }

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    float* const sums = static_cast<float*>(a.scratch);
    const int64_t groups = this->groups();
    ForParts(parts_, t.batch * floats(), static_cast<size_t>(floats()),
             sums + parts_ * this->weight_floats(), [&](int64_t part, float* scratch) {
               SumGroups(a, groups * part / parts_, groups * (part + 1) / parts_, scratch,
                         sums + part * this->weight_floats());
             });
    device::ParallelFor(t.in_channels, parts_ * Base::kSquarePoints * t.padded_out(),
                        [&](int64_t c) { Finish(c, sums, a.out<float>(0)); });
  }

 private:
  using Base = WinogradKernel<kTaps>;
  using Base::kLanes;
  static constexpr int64_t kMostParts = 8;
  // Of rows of sixteen, one after the other.
  static constexpr Strides kDense{Base::kPoints * kLanes, kLanes};

  int64_t out_panels() const { return this->t_.padded_out() / kLanes; }
  // Panels of dy that are transformed and multiplied together, so that what they are made of and
  // their sums stay in the second cache: a tile of AVX-512 takes two.
  static int64_t panels_together() { return UsesWideTiles() ? 2 : 1; }
  // From one point to the next, of the tiles of x and of those panels of dy.
  int64_t image_step() const { return inner_ * this->t_.in_channels + Base::kGap; }
  int64_t gradient_step() const { return inner_ * panels_together() * kLanes + Base::kGap; }
  // The tiles of both at all points, and dy with sixteen channels next to each other, twice.
  int64_t floats() const {
    return Base::kSquarePoints * (image_step() + gradient_step()) +
           2 * this->t_.padded_result() * kLanes + this->moving_floats();
  }

  // The sum over groups `begin` to `end`: [point, C, padded O].
  void SumGroups(const Arguments& a, int64_t begin, int64_t end, float* images, float* sums) const {
    const WinogradTiling& t = this->t_;
    float* const gradients = images + Base::kSquarePoints * image_step();
    float* const turned = gradients + Base::kSquarePoints * gradient_step();
    float* const moving = turned + 2 * t.padded_result() * kLanes;
    if (!t.IsWholeResult()) std::fill(turned, moving, 0.0F);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * t.together, samples = std::min(t.together, t.batch - first);
      this->TransformImages(samples, a.in<float>(0) + first * t.image(), moving, images,
                            {kLanes, inner_, image_step()});
      const Product product{.m = t.in_channels, .k = samples * t.tiles(), .a = {inner_, 1}};
      for (int64_t panel = 0; panel < out_panels(); panel += panels_together()) {
        const int64_t panels = std::min(panels_together(), out_panels() - panel);
        for (int64_t i = 0; i < panels; ++i) {
          TransformPanel(panel + i, samples, a.in<float>(1) + first * t.result(), turned,
                         gradients + i * inner_ * kLanes);
        }
        for (int64_t point = 0; point < Base::kSquarePoints; ++point) {
          product.RunPacked(images + point * image_step(), gradients + point * gradient_step(),
                            sums + point * t.in_channels * t.padded_out() + panel * kLanes,
                            t.padded_out(), group > begin, {panels, inner_ * kLanes, kLanes});
        }
      }
    }
  }

  // A panel of channels of the samples' dy -> [point, tile, 16]. The edges of `turned` are zeros,
  // and stay so.
  void TransformPanel(int64_t panel, int64_t samples, const float* dy, float* turned,
                      float* to) const {
    const WinogradTiling& t = this->t_;
    const int64_t places = t.h.out * t.w.out, width = t.result_width() * kLanes;
    const int64_t first = panel * kLanes, channels = std::min(kLanes, t.out_channels - first);
    const bool whole = t.IsWholeResult();
    float* const dense = whole ? turned : turned + t.padded_result() * kLanes;
    for (int64_t n = 0; n < samples; ++n) {
      Pack(places, channels, {1, places}, dy + n * t.result() + first * places, dense);
      if (!whole) CopyRows(t.h.out, t.w.out * kLanes, dense, t.w.out * kLanes, turned, width);
      for (int64_t tile = 0; tile < t.tiles(); ++tile, to += kLanes) {
        this->transforms_.result_grad(
            turned + kTileSide * (tile / t.across * width + tile % t.across * kLanes),
            {width, kLanes}, to, gradient_step());
      }
    }
  }

  // The weights of input channel `c`.
  void Finish(int64_t c, const float* sums, float* dweight) const {
    const WinogradTiling& t = this->t_;
    constexpr int64_t kSquareTaps = kTaps * kTaps;
    float points[Base::kSquarePoints * kLanes], made[kSquareTaps * kLanes];
    for (int64_t first = 0; first < t.out_channels; first += kLanes) {
      for (int64_t point = 0; point < Base::kSquarePoints; ++point) {
        const float* from = sums + (point * t.in_channels + c) * t.padded_out() + first;
        float* to = points + point * kLanes;
        std::copy_n(from, kLanes, to);
        for (int64_t part = 1; part < parts_; ++part) {
          const float* more = from + part * this->weight_floats();
          for (int64_t o = 0; o < kLanes; ++o) to[o] += more[o];
        }
      }
      this->transforms_.weight_grad(points, kDense, made, kLanes);
      const int64_t count = std::min(kLanes, t.out_channels - first);
      for (int64_t o = 0; o < count; ++o) {
        float* to = dweight + ((first + o) * t.in_channels + c) * kSquareTaps;
        for (int64_t tap = 0; tap < kSquareTaps; ++tap) to[tap] = made[tap * kLanes + o];
      }
    }
  }

  const int64_t parts_;
  const int64_t inner_;  // the products' inner axis: tiles of a group
};

}  // namespace

std::unique_ptr<Primitive> WinogradConv2dGradWeight(const NodeSpec& node) {
  return MakeWinograd<WinogradGradWeightKernel>(node, node.inputs[0].shape, node.outputs[0].shape,
                                                node.inputs[1].shape);
}

}  // namespace ringmaster::kernels::vector

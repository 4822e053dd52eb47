// Convolution of small images over tiles of 6 x 6 pixels (winograd_transforms.h). In the space that
// the transforms lead to, each of 36 points has a matrix product of its own: the weights' by that
// of the tiles of one image, with a sum over channels. The transforms cost little where channels
// are many. 5 x 5 weights make 4 results of a tile with 36 multiplications instead of 100, 3 x 3
// weights 16 with 36 instead of 144. Gradients are the transposed transforms, backwards, so that
// they see the same tiles.
//
// Between two steps that see the same memory in pieces of different sizes the work of several
// channels lies: a load that wants parts of two stores waits until both have left the processor.
#include "runtime/kernels/vector/winograd.h"

#include <algorithm>
#include <string>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd_tiles.h"
#include "runtime/kernels/vector/winograd_transforms.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kLanes = kTileColumns;
// Of rows of sixteen, one after the other.
constexpr Strides kDense{kPoints * kLanes, kLanes};
// Channels that take each step together.
constexpr int64_t kGroup = 8;

// Up to so many floats the weights' transforms, and those of one image and its result, stay in the
// second cache.
constexpr int64_t kMostWeights = 1 << 16;
constexpr int64_t kMostTiles = 1 << 17;
// Fewer channels are transformed for longer than they are multiplied.
constexpr int64_t kLeastChannels = 8;
// How many multiplications of a convolution one at a point must replace.
constexpr int64_t kLeastGain = 2;

bool Pays(const WinogradTiling& t) {
  const int64_t lanes = t.panels * kLanes;
  return std::min(t.in_channels, t.out_channels) >= kLeastChannels &&
         kSquarePoints * t.in_channels * t.padded_out() <= kMostWeights &&
         kSquarePoints * lanes * (t.in_channels + t.out_channels) <= kMostTiles &&
         t.h.out * t.w.out * t.taps * t.taps >= kLeastGain * kSquarePoints * lanes;
}

// kStride as the tiling has it.
template <int64_t kStride>
class WinogradKernel : public VectorPrimitive {
 public:
  std::string name() const override { return "vector/winograd"; }

 protected:
  explicit WinogradKernel(const WinogradTiling& tiling)
      : t_(tiling), tiles_(tiling), transforms_(WinogradTransformsFor(tiling.taps)) {}

  int64_t weight_floats() const { return kSquarePoints * t_.in_channels * t_.padded_out(); }
  // What a thread moves tiles through: a padded image or result, and a group's phases and tiles.
  int64_t moving_floats() const {
    return std::max(t_.padded_image(), t_.padded_result()) +
           kGroup * (t_.padded_image() + kSquarePoints * kLanes);
  }

  // weight [O, C, taps, taps] -> [point, C, padded O].
  void TransformWeights(const float* weight, float* to) const {
    const int64_t taps = t_.taps * t_.taps, padded = t_.padded_out();
    device::ParallelFor(t_.in_channels, padded * kSquarePoints, [&](int64_t c) {
      float lanes[kSquarePoints * kLanes];
      for (int64_t first = 0; first < t_.out_channels; first += kLanes) {
        const int64_t count = std::min(kLanes, t_.out_channels - first);
        for (int64_t tap = 0; tap < taps; ++tap) {
          const float* from = weight + (first * t_.in_channels + c) * taps + tap;
          float* each = lanes + tap * kLanes;
          for (int64_t o = 0; o < count; ++o) each[o] = from[o * t_.in_channels * taps];
          std::fill(each + count, each + kLanes, 0.0F);
        }
        transforms_.weight(lanes, {t_.taps * kLanes, kLanes}, to + c * padded + first,
                           t_.in_channels * padded);
      }
    });
  }

  // An image's tiles -> [point, C, ...]: of the next panel `panel_step` floats on, of the next
  // channel `channel_step`. `moving` has moving_floats().
  void TransformImage(const float* x, float* moving, float* to, int64_t panel_step,
                      int64_t channel_step) const {
    float *const phases = moving + t_.padded_image(), *const tiles =
                                                          phases + kGroup * t_.padded_image();
    std::fill_n(moving, t_.padded_image(), 0.0F);
    ForGroups(t_.in_channels, [&](int64_t first, int64_t count) {
      for (int64_t c = 0; c < count; ++c)
        tiles_.Split(x + (first + c) * t_.h.in * t_.w.in, moving, phases + c * t_.padded_image());
      for (int64_t panel = 0; panel < t_.panels; ++panel) {
        for (int64_t c = 0; c < count; ++c)
          tiles_.Gather(panel, phases + c * t_.padded_image(), tiles + c * kSquarePoints * kLanes);
        for (int64_t c = 0; c < count; ++c) {
          transforms_.image(tiles + c * kSquarePoints * kLanes, kDense,
                            to + panel * panel_step + (first + c) * channel_step,
                            t_.in_channels * channel_step);
        }
      }
    });
  }

  // Calls body(first, count) for groups of channels.
  template <typename Body>
  static void ForGroups(int64_t channels, const Body& body) {
    for (int64_t first = 0; first < channels; first += kGroup)
      body(first, std::min(kGroup, channels - first));
  }

  const WinogradTiling t_;
  const WinogradTiles<kStride> tiles_;
  const WinogradTransforms& transforms_;
};

// Kernels whose result is one sample's at a time: of each point the weights' matrix times the
// tiles.
template <int64_t kStride>
class WinogradBySample : public WinogradKernel<kStride> {
 public:
  size_t scratch_bytes() const override {
    return static_cast<size_t>(this->weight_floats() + device::ThreadCount() * floats()) *
           sizeof(float);
  }

 protected:
  WinogradBySample(const WinogradTiling& tiling, const Product& product)
      : WinogradKernel<kStride>(tiling),
        product_(product),
        together_(tiling.panels % 2 == 1 && tiling.batch >= 2 * device::ThreadCount() ? 2 : 1) {}

  // Calls transform(sample, points, moving) and finish(sample, sums, moving) for all samples: the
  // former makes the tiles of all panels, [panel, point, k, 16], the latter uses their products,
  // [panel, point, m, 16].
  template <typename Transform, typename Finish>
  void ForSamples(const float* weight, void* scratch, const Transform& transform,
                  const Finish& finish) const {
    const WinogradTiling& t = this->t_;
    float* const weights = static_cast<float*>(scratch);
    this->TransformWeights(weight, weights);
    ForParts(PartsOf(t.batch, together_), floats(), static_cast<size_t>(floats()),
             weights + this->weight_floats(), [&](int64_t part, float* points) {
               const int64_t first = part * together_, count = std::min(together_, t.batch - first);
               const int64_t points_each = t.panels * t.point_floats(product_.k),
                             sums_each = t.panels * t.point_floats(product_.m);
               float* const sums = points + together_ * points_each;
               float* const moving = sums + together_ * sums_each;
               for (int64_t i = 0; i < count; ++i)
                 transform(first + i, points + i * points_each, moving);
               Multiply(weights, count * t.panels, points, sums);
               for (int64_t i = 0; i < count; ++i) finish(first + i, sums + i * sums_each, moving);
             });
  }

 private:
  int64_t floats() const {
    return together_ * this->t_.panels * this->t_.point_floats(product_.k + product_.m) +
           this->moving_floats();
  }

  void Multiply(const float* weights, int64_t panels, const float* points, float* sums) const {
    const WinogradTiling& t = this->t_;
    for (int64_t point = 0; point < kSquarePoints; ++point) {
      product_.RunPacked(weights + point * t.in_channels * t.padded_out(),
                         points + point * product_.k * kLanes, sums + point * product_.m * kLanes,
                         kLanes, false,
                         {panels, t.point_floats(product_.k), t.point_floats(product_.m)});
    }
  }

  const Product product_;
  const int64_t together_;  // samples, so that panels make pairs
};

// (x, weight, bias or nothing) -> y, or its positive part.
template <int64_t kStride>
class WinogradConv2dKernel : public WinogradBySample<kStride> {
 public:
  WinogradConv2dKernel(const WinogradTiling& t, bool has_bias, bool relu)
      : WinogradBySample<kStride>(
            t, {.m = t.out_channels, .k = t.in_channels, .a = {1, t.padded_out()}}),
        has_bias_(has_bias),
        relu_(relu) {}

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    this->ForSamples(
        a.in<float>(1), a.scratch,
        [&](int64_t n, float* points, float* moving) {
          this->TransformImage(a.in<float>(0) + n * t.image(), moving, points,
                               t.point_floats(t.in_channels), kLanes);
        },
        [&](int64_t n, const float* sums, float* moving) {
          float* y = a.out<float>(0) + n * t.result();
          for (int64_t o = 0; o < t.out_channels; ++o, y += t.h.out * t.w.out)
            MakeChannel(o, has_bias_ ? a.in<float>(2)[o] : 0.0F, sums, moving, y);
        });
  }

 private:
  void MakeChannel(int64_t o, float bias, const float* sums, float* moving, float* y) const {
    const WinogradTiling& t = this->t_;
    const bool whole = t.IsWhole();
    const int64_t step = t.out_channels * kLanes, width = kStride * t.across;
    float *const padded = moving, *const tiles = padded + t.padded_result();
    for (int64_t panel = 0; panel < t.panels; ++panel) {
      this->transforms_.result(sums + panel * t.point_floats(t.out_channels) + o * kLanes,
                               {kPoints * step, step}, tiles, kLanes);
      if (has_bias_) AddBias(bias, tiles);
      if (relu_) KeepPositive(tiles);
      this->tiles_.ScatterResult(panel, tiles, whole ? y : padded, width);
    }
    if (!whole) CopyRows(t.h.out, t.w.out, padded, width, y, t.w.out);
  }

  static void AddBias(float bias, float* tiles) {
    for (int64_t i = 0; i < kStride * kStride * kLanes; ++i) tiles[i] += bias;
  }
  // What is no number stays, as in the op of its own.
  static void KeepPositive(float* tiles) {
    for (int64_t i = 0; i < kStride * kStride * kLanes; ++i)
      tiles[i] = tiles[i] <= 0.0F ? 0.0F : tiles[i];
  }

  const bool has_bias_, relu_;
};

// (dy, weight) -> dx, with the weights' matrices transposed.
template <int64_t kStride>
class WinogradGradInputKernel : public WinogradBySample<kStride> {
 public:
  explicit WinogradGradInputKernel(const WinogradTiling& t)
      : WinogradBySample<kStride>(
            t, {.m = t.in_channels, .k = t.out_channels, .a = {t.padded_out(), 1}}) {}

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    this->ForSamples(
        a.in<float>(1), a.scratch,
        [&](int64_t n, float* points, float* moving) {
          TransformResult(a.in<float>(0) + n * t.result(), points, moving);
        },
        [&](int64_t n, const float* sums, float* moving) {
          AddTiles(sums, moving, a.out<float>(0) + n * t.image());
        });
  }

 private:
  static constexpr int64_t kResultFloats = kStride * kStride * kLanes;  // of a panel's tiles

  void TransformResult(const float* dy, float* points, float* moving) const {
    const WinogradTiling& t = this->t_;
    const int64_t plane = t.h.out * t.w.out, width = kStride * t.across;
    float *const padded = moving, *const tiles = padded + t.padded_result();
    if (!t.IsWhole()) std::fill_n(padded, t.padded_result(), 0.0F);
    for (int64_t panel = 0; panel < t.panels; ++panel) {
      this->ForGroups(t.out_channels, [&](int64_t first, int64_t count) {
        for (int64_t o = 0; o < count; ++o) {
          const float* from = dy + (first + o) * plane;
          if (!t.IsWhole()) CopyRows(t.h.out, t.w.out, from, t.w.out, padded, width);
          this->tiles_.GatherResult(panel, t.IsWhole() ? from : padded, width,
                                    tiles + o * kResultFloats);
        }
        for (int64_t o = 0; o < count; ++o) {
          this->transforms_.result_grad(
              tiles + o * kResultFloats, {kStride * kLanes, kLanes},
              points + panel * t.point_floats(t.out_channels) + (first + o) * kLanes,
              t.out_channels * kLanes);
        }
      });
    }
  }

  void AddTiles(const float* sums, float* moving, float* dx) const {
    const WinogradTiling& t = this->t_;
    float *const padded = moving, *const phases = padded + t.padded_image(),
                 *const tiles = phases + kGroup * t.padded_image();
    const int64_t step = t.in_channels * kLanes;
    this->ForGroups(t.in_channels, [&](int64_t first, int64_t count) {
      std::fill_n(phases, count * t.padded_image(), 0.0F);
      for (int64_t panel = 0; panel < t.panels; ++panel) {
        for (int64_t c = 0; c < count; ++c) {
          this->transforms_.image_grad(
              sums + panel * t.point_floats(t.in_channels) + (first + c) * kLanes,
              {kPoints * step, step}, tiles + c * kSquarePoints * kLanes, kLanes);
        }
        for (int64_t j = 0; j < kPoints; ++j) {
          for (int64_t c = 0; c < count; ++c) {
            this->tiles_.AddColumn(panel, j, tiles + c * kSquarePoints * kLanes,
                                   phases + c * t.padded_image());
          }
        }
      }
      for (int64_t c = 0; c < count; ++c) {
        this->tiles_.Join(phases + c * t.padded_image(), padded,
                          dx + (first + c) * t.h.in * t.w.in);
      }
    });
  }
};

// (x, dy) -> dweight: at each point the tiles of x times those of dy, summed over tiles and samples
// in order, in a number of parts that depends on the batch alone and that are added at the end.
template <int64_t kStride>
class WinogradGradWeightKernel : public WinogradKernel<kStride> {
 public:
  explicit WinogradGradWeightKernel(const WinogradTiling& t)
      : WinogradKernel<kStride>(t),
        parts_(std::min(t.batch, kMostParts)),
        inner_(kTogether * t.panels * kLanes) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * this->weight_floats() + device::ThreadCount() * floats()) *
           sizeof(float);
  }

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    float* const sums = static_cast<float*>(a.scratch);
    ForParts(parts_, t.batch * floats(), static_cast<size_t>(floats()),
             sums + parts_ * this->weight_floats(), [&](int64_t part, float* scratch) {
               SumSamples(a, t.batch * part / parts_, t.batch * (part + 1) / parts_, scratch,
                          sums + part * this->weight_floats());
             });
    device::ParallelFor(t.in_channels, parts_ * kSquarePoints * t.padded_out(),
                        [&](int64_t c) { Finish(c, sums, a.out<float>(0)); });
  }

 private:
  static constexpr int64_t kMostParts = 8;
  // Samples whose tiles are an inner axis together, so that sums are loaded less often.
  static constexpr int64_t kTogether = 2;

  int64_t out_panels() const { return this->t_.padded_out() / kLanes; }
  // Of dy's tiles at one point. What a tile has at all points is written at once; were points apart
  // by a power of two, its lines would displace one another in the cache.
  int64_t gradient_step() const { return inner_ * this->t_.padded_out() + kLanes; }
  // The tiles of both at all points, and dy with sixteen channels next to each other, twice.
  int64_t floats() const {
    return kSquarePoints * (inner_ * this->t_.in_channels + gradient_step()) +
           2 * this->t_.padded_result() * kLanes + this->moving_floats();
  }

  // The sum over samples `begin` to `end`: [point, C, padded O].
  void SumSamples(const Arguments& a, int64_t begin, int64_t end, float* points,
                  float* sums) const {
    const WinogradTiling& t = this->t_;
    const int64_t each = t.panels * kLanes;
    float* const gradients = points + kSquarePoints * inner_ * t.in_channels;
    float* const turned = gradients + kSquarePoints * gradient_step();
    float* const moving = turned + 2 * t.padded_result() * kLanes;
    if (!t.IsWhole() || t.down * t.across != each) std::fill(gradients, moving, 0.0F);
    for (int64_t n = begin; n < end; n += kTogether) {
      const int64_t samples = std::min(kTogether, end - n);
      for (int64_t i = 0; i < samples; ++i) {
        this->TransformImage(a.in<float>(0) + (n + i) * t.image(), moving, points + i * each,
                             kLanes, inner_);
        TransformResult(a.in<float>(1) + (n + i) * t.result(), turned,
                        gradients + i * each * kLanes);
      }
      const Product product{.m = t.in_channels, .k = samples * each, .a = {inner_, 1}};
      for (int64_t point = 0; point < kSquarePoints; ++point) {
        product.RunPacked(points + point * t.in_channels * inner_,
                          gradients + point * gradient_step(),
                          sums + point * t.in_channels * t.padded_out(), t.padded_out(), n > begin,
                          {out_panels(), inner_ * kLanes, kLanes});
      }
    }
  }

  // dy's tiles -> [point, panel of channels, tile, 16]. The edges of `turned` are zeros, and stay
  // so.
  void TransformResult(const float* dy, float* turned, float* to) const {
    const WinogradTiling& t = this->t_;
    const int64_t places = t.h.out * t.w.out, width = kStride * t.across * kLanes;
    float* const dense = t.IsWhole() ? turned : turned + t.padded_result() * kLanes;
    for (int64_t panel = 0; panel < out_panels(); ++panel) {
      const int64_t first = panel * kLanes;
      Pack(places, std::min(kLanes, t.out_channels - first), {1, places}, dy + first * places,
           dense);
      if (!t.IsWhole()) CopyRows(t.h.out, t.w.out * kLanes, dense, t.w.out * kLanes, turned, width);
      for (int64_t tile = 0; tile < t.down * t.across; ++tile) {
        this->transforms_.result_grad(
            turned + tile / t.across * kStride * width + tile % t.across * kStride * kLanes,
            {width, kLanes}, to + (panel * inner_ + tile) * kLanes, gradient_step());
      }
    }
  }

  // The weights of input channel `c`.
  void Finish(int64_t c, const float* sums, float* dweight) const {
    const WinogradTiling& t = this->t_;
    const int64_t taps = t.taps * t.taps;
    float points[kSquarePoints * kLanes], made[kSquarePoints * kLanes];
    for (int64_t first = 0; first < t.out_channels; first += kLanes) {
      for (int64_t point = 0; point < kSquarePoints; ++point) {
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
        float* to = dweight + ((first + o) * t.in_channels + c) * taps;
        for (int64_t tap = 0; tap < taps; ++tap) to[tap] = made[tap * kLanes + o];
      }
    }
  }

  const int64_t parts_;
  const int64_t inner_;  // the products' inner axis: tiles of samples
};

template <template <int64_t> typename Kernel, typename... Options>
std::unique_ptr<Primitive> MakeWinograd(const NodeSpec& node, const tensor::Shape& x,
                                        const tensor::Shape& weight, const tensor::Shape& y,
                                        Options... options) {
  const WinogradTiling tiling(x, weight, y, node.attributes);
  if (!tiling.HasTiles() || !Pays(tiling)) return nullptr;
  if (tiling.stride == 2) return std::make_unique<Kernel<2>>(tiling, options...);
  return std::make_unique<Kernel<4>>(tiling, options...);
}

}  // namespace

std::unique_ptr<Primitive> WinogradConv2d(const NodeSpec& node) {
  return MakeWinograd<WinogradConv2dKernel>(node, node.inputs[0].shape, node.inputs[1].shape,
                                            node.outputs[0].shape, node.inputs.size() == 3,
                                            node.attributes.Int("relu") != 0);
}

std::unique_ptr<Primitive> WinogradConv2dGradInput(const NodeSpec& node) {
  return MakeWinograd<WinogradGradInputKernel>(node, node.outputs[0].shape, node.inputs[1].shape,
                                               node.inputs[0].shape);
}

std::unique_ptr<Primitive> WinogradConv2dGradWeight(const NodeSpec& node) {
  return MakeWinograd<WinogradGradWeightKernel>(node, node.inputs[0].shape, node.outputs[0].shape,
                                                node.inputs[1].shape);
}

}  // namespace ringmaster::kernels::vector

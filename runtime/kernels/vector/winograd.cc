// Convolution of small images over tiles (winograd_transforms.h) that make 4 x 4 results each, of 6
// x 6 pixels for 3 x 3 weights and of 8 x 8 for 5 x 5. In the space that the transforms lead to,
// each of 36 or 64 points has a matrix product of its own: the weights' by that of the tiles of a
// group of samples, with a sum over channels. The transforms cost little where channels are many.
// For 16 results of 3 x 3 weights there are 36 multiplications instead of 144, of 5 x 5 weights 64
// instead of 400. Gradients are the transposed transforms, backwards, so that they see the same
// tiles.
//
// Between two steps that see the same memory in pieces of different sizes the work of several
// channels lies: a load that wants parts of two stores waits until both have left the processor.
#include "runtime/kernels/vector/winograd.h"

#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/winograd_kernel.h"
#include "runtime/kernels/vector/winograd_tiles.h"
#include "runtime/kernels/vector/winograd_transforms.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Up to so many floats the weights' transforms, and those of one group and its result, stay in the
// caches.
constexpr int64_t kMostWeights = 1 << 17;
constexpr int64_t kMostTiles = 1 << 18;
// Fewer channels are transformed for longer than they are multiplied.
constexpr int64_t kLeastChannels = 8;
// How many multiplications of a convolution one at a point must replace.
constexpr int64_t kLeastGain = 2;

// Kernels whose result is one group's at a time: of each point the weights' matrix times the tiles,
// for some rows of the result after others, whose sums stay in the second cache until they are
// used.
template <int64_t kTaps>
class WinogradByGroup : public WinogradKernel<kTaps> {
 public:
  size_t scratch_bytes() const override {
    return static_cast<size_t>(this->weight_floats() + device::ThreadCount() * floats()) *
           sizeof(float);
  }

 protected:
  using Base = WinogradKernel<kTaps>;
  using Base::kLanes, Base::kPoints, Base::kSquarePoints;

  WinogradByGroup(const WinogradTiling& tiling, const Product& product)
      : Base(Shared(tiling)), product_(product), rows_(RowsTogether(this->t_, product.m)) {}

  // Rows of products: channels of the result.
  struct Rows {
    int64_t first, count;
  };

  // Calls transform(first sample, samples, points, moving), and then finish(first sample, samples,
  // rows, sums, moving) for some rows after others, for all groups: the former makes the tiles of
  // all panels, [panel, point, k, 16], the latter uses their products, [panel, point, row, 16], as
  // SumSteps has them.
  template <typename Transform, typename Finish>
  void ForGroups(const float* weight, void* scratch, const Transform& transform,
                 const Finish& finish) const {
    const WinogradTiling& t = this->t_;
    float* const weights = static_cast<float*>(scratch);
    TransformWeights(weight, weights);
    ForParts(this->groups(), floats(), static_cast<size_t>(floats()),
             weights + this->weight_floats(), [&](int64_t group, float* points) {
               const int64_t first = group * t.together,
                             samples = std::min(t.together, t.batch - first),
                             panels = t.panels(t.together);
               float* const sums = points + panels * this->panel_floats(product_.k);
               float* const moving = sums + panels * this->panel_floats(rows_);
               transform(first, samples, points, moving);
               for (int64_t row = 0; row < product_.m; row += rows_) {
                 const Rows rows{row, std::min(rows_, product_.m - row)};
                 Multiply(weights, t.panels(samples), points, rows, sums);
                 finish(first, samples, rows, sums, moving);
               }
             });
  }

  // Of a panel with that many channels.
  static typename Base::PointSteps Steps(int64_t channels) {
    return {Base::panel_floats(channels), kLanes, Base::point_step(channels)};
  }
  // Of the sums that finish() sees.
  typename Base::PointSteps SumSteps() const { return Steps(rows_); }

 private:
  // So many floats of sums leave room in the second cache for tiles and weights.
  static constexpr int64_t kMostSums = 40 << 10;

  // With a group for each thread, which changes no sum.
  static WinogradTiling Shared(WinogradTiling tiling) {
    tiling.together = std::clamp<int64_t>(tiling.batch / device::ThreadCount(), 1, tiling.together);
    return tiling;
  }

  // As few steps as there can be, all about as large.
  static int64_t RowsTogether(const WinogradTiling& tiling, int64_t rows) {
    const int64_t floats = kSquarePoints * tiling.panels(tiling.together) * kLanes;
    return PartsOf(rows, PartsOf(rows, std::max<int64_t>(1, kMostSums / floats)));
  }

  // weight [O, C, taps, taps] -> [point, C, padded O].
  void TransformWeights(const float* weight, float* to) const {
    constexpr int64_t kSquareTaps = kTaps * kTaps;
    const WinogradTiling& t = this->t_;
    const int64_t padded = t.padded_out();
    device::ParallelFor(t.in_channels, padded * kSquarePoints, [&](int64_t c) {
      float lanes[kSquareTaps * kLanes];
      for (int64_t first = 0; first < t.out_channels; first += kLanes) {
        const int64_t count = std::min(kLanes, t.out_channels - first);
        Pack(kSquareTaps, count, {1, t.in_channels * kSquareTaps},
             weight + (first * t.in_channels + c) * kSquareTaps, lanes);
        this->transforms_.weight(lanes, {kTaps * kLanes, kLanes}, to + c * padded + first,
                                 t.in_channels * padded);
      }
    });
  }

  int64_t floats() const {
    return this->t_.panels(this->t_.together) *
               (this->panel_floats(product_.k) + this->panel_floats(rows_)) +
           this->moving_floats();
  }

  void Multiply(const float* weights, int64_t panels, const float* points, const Rows& rows,
                float* sums) const {
    const WinogradTiling& t = this->t_;
    Product product = product_;
    product.m = rows.count;
    weights += rows.first * product.a.row;
    for (int64_t point = 0; point < kSquarePoints; ++point) {
      product.RunPacked(weights + point * t.in_channels * t.padded_out(),
                        points + point * this->point_step(product.k),
                        sums + point * SumSteps().point, kLanes, false,
                        {panels, this->panel_floats(product.k), SumSteps().panel});
    }
  }

  const Product product_;
  const int64_t rows_;  // of the result that are made together
};

// (x, weight, bias or nothing) -> y, or its positive part.
template <int64_t kTaps>
class WinogradConv2dKernel : public WinogradByGroup<kTaps> {
 public:
  WinogradConv2dKernel(const WinogradTiling& t, bool has_bias, bool relu)
      : Base(t, {.m = t.out_channels, .k = t.in_channels, .a = {1, t.padded_out()}}),
        has_bias_(has_bias),
        relu_(relu) {}

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    this->ForGroups(
        a.in<float>(1), a.scratch,
        [&](int64_t n, int64_t samples, float* points, float* moving) {
          this->TransformImages(samples, a.in<float>(0) + n * t.image(), moving, points,
                                this->Steps(t.in_channels));
        },
        [&](int64_t n, int64_t samples, const Rows& rows, const float* sums, float* moving) {
          for (int64_t i = 0; i < rows.count; ++i) {
            const int64_t o = rows.first + i;
            MakeChannel(has_bias_ ? a.in<float>(2)[o] : 0.0F, samples, sums + i * kLanes, moving,
                        a.out<float>(0) + n * t.result() + o * t.h.out * t.w.out);
          }
        });
  }

 private:
  using Base = WinogradByGroup<kTaps>;
  using Base::kLanes, typename Base::Rows;
  static constexpr int64_t kResults = kTileSide * kTileSide;  // of a tile

  void MakeChannel(float bias, int64_t samples, const float* sums, float* moving, float* y) const {
    const WinogradTiling& t = this->t_;
    const bool whole = t.IsWholeResult();
    const int64_t step = this->SumSteps().point, width = t.result_width();
    float *const tiles = moving, *const padded = tiles + kResults * kLanes;
    const Planes<float> planes = whole ? Planes<float>{y, t.result(), width, 0}
                                       : Planes<float>{padded, t.padded_result(), width, 0};
    for (int64_t panel = 0; panel < t.panels(samples); ++panel) {
      this->transforms_.result(sums + panel * this->SumSteps().panel, {Base::kPoints * step, step},
                               tiles, kLanes);
      if (has_bias_) AddBias(bias, tiles);
      if (relu_) KeepPositive(tiles);
      ScatterTiles<kTileSide>(tiles, PlacesOf(t, panel, samples, planes), t.lanes(panel, samples),
                              planes.first, width, _mm_storeu_ps);
    }
    if (whole) return;
    for (int64_t n = 0; n < samples; ++n) {
      CopyRows(t.h.out, t.w.out, padded + n * t.padded_result(), width, y + n * t.result(),
               t.w.out);
    }
  }

  static void AddBias(float bias, float* tiles) {
    for (int64_t i = 0; i < kResults * kLanes; ++i) tiles[i] += bias;
  }
  // What is no number stays, as in the op of its own.
  static void KeepPositive(float* tiles) {
    for (int64_t i = 0; i < kResults * kLanes; ++i) tiles[i] = tiles[i] <= 0.0F ? 0.0F : tiles[i];
  }

  const bool has_bias_, relu_;
};

// (dy, weight) -> dx, with the weights' matrices transposed.
template <int64_t kTaps>
class WinogradGradInputKernel : public WinogradByGroup<kTaps> {
 public:
  explicit WinogradGradInputKernel(const WinogradTiling& t)
      : Base(t, {.m = t.in_channels, .k = t.out_channels, .a = {t.padded_out(), 1}}) {}

  void Run(const Arguments& a) override {
    const WinogradTiling& t = this->t_;
    this->ForGroups(
        a.in<float>(1), a.scratch,
        [&](int64_t n, int64_t samples, float* points, float* moving) {
          TransformResults(samples, a.in<float>(0) + n * t.result(), points, moving);
        },
        [&](int64_t n, int64_t samples, const Rows& rows, const float* sums, float* moving) {
          AddTiles(samples, rows.count, sums, moving,
                   a.out<float>(0) + n * t.image() + rows.first * t.h.in * t.w.in);
        });
  }

 private:
  using Base = WinogradByGroup<kTaps>;
  using Base::kGroup, Base::kLanes, typename Base::Rows;
  static constexpr int64_t kTileFloats = Base::kSquarePoints * kLanes;  // of a panel's tiles

  void TransformResults(int64_t samples, const float* dy, float* points, float* moving) const {
    const WinogradTiling& t = this->t_;
    const int64_t plane = t.h.out * t.w.out, padded = t.padded_result();
    const bool whole = t.IsWholeResult();
    float* const copies = moving + kGroup * kTileFloats;
    if (!whole) std::fill_n(copies, kGroup * samples * padded, 0.0F);
    this->ForChannels(t.out_channels, [&](int64_t first, int64_t count) {
      const float* results = dy + first * plane;
      if (!whole) {
        this->ForPlanes(samples, count, [&](int64_t n, int64_t o) {
          CopyRows(t.h.out, t.w.out, results + n * t.result() + o * plane, t.w.out,
                   copies + (o * samples + n) * padded, t.result_width());
        });
      }
      const Planes<const float> planes =
          whole ? Planes<const float>{results, t.result(), t.w.out, plane}
                : Planes<const float>{copies, padded, t.result_width(), samples * padded};
      this->template TransformPlanes<kTileSide>(this->transforms_.result_grad, samples, count,
                                                planes, moving, points + first * kLanes,
                                                this->Steps(t.out_channels));
    });
  }

  // Of some channels.
  void AddTiles(int64_t samples, int64_t channels, const float* sums, float* moving,
                float* dx) const {
    const WinogradTiling& t = this->t_;
    const int64_t plane = t.h.in * t.w.in, padded = t.padded_image();
    const bool whole = t.IsWholeImage();
    float *const tiles = moving, *const copies = moving + kGroup * kTileFloats;
    const int64_t step = this->SumSteps().point;
    this->ForChannels(channels, [&](int64_t first, int64_t count) {
      float* const images = dx + first * plane;
      const Planes<float> planes =
          whole ? Planes<float>{images, t.image(), t.w.in, plane}
                : Planes<float>{copies, padded, t.image_width(), samples * padded};
      this->ForPlanes(samples, count, [&](int64_t n, int64_t c) {
        std::fill_n(planes.first + n * planes.sample + c * planes.channel, padded, 0.0F);
      });
      for (int64_t panel = 0; panel < t.panels(samples); ++panel) {
        const Places places = PlacesOf(t, panel, samples, planes);
        for (int64_t c = 0; c < count; ++c) {
          this->transforms_.image_grad(sums + panel * this->SumSteps().panel + (first + c) * kLanes,
                                       {Base::kPoints * step, step}, tiles + c * kTileFloats,
                                       kLanes);
        }
        for (int64_t c = 0; c < count; ++c) {
          ScatterTiles<Base::kPoints>(
              tiles + c * kTileFloats, places, t.lanes(panel, samples),
              planes.first + c * planes.channel, planes.row,
              [](float* to, __m128 v) { _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), v)); });
        }
      }
      if (whole) return;
      this->ForPlanes(samples, count, [&](int64_t n, int64_t c) {
        CopyRows(t.h.in, t.w.in, copies + (c * samples + n) * padded + this->FirstPixel(),
                 t.image_width(), images + n * t.image() + c * plane, t.w.in);
      });
    });
  }
};

}  // namespace

bool Pays(const WinogradTiling& t) {
  const int64_t points = SquarePointsOf(t.taps), lanes = t.panels(t.together) * kTileColumns;
  return std::min(t.in_channels, t.out_channels) >= kLeastChannels &&
         points * t.in_channels * t.padded_out() <= kMostWeights &&
         points * lanes * (t.in_channels + t.out_channels) <= kMostTiles &&
         t.together * t.h.out * t.w.out * t.taps * t.taps >= kLeastGain * points * lanes;
}

std::unique_ptr<Primitive> WinogradConv2d(const NodeSpec& node) {
  return MakeWinograd<WinogradConv2dKernel>(node, node.inputs[0].shape, node.inputs[1].shape,
                                            node.outputs[0].shape, node.inputs.size() == 3,
                                            node.attributes.Int("relu") != 0);
}

std::unique_ptr<Primitive> WinogradConv2dGradInput(const NodeSpec& node) {
  return MakeWinograd<WinogradGradInputKernel>(node, node.outputs[0].shape, node.inputs[1].shape,
                                               node.inputs[0].shape);
}

}  // namespace ringmaster::kernels::vector

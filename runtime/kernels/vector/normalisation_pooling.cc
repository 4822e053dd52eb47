// Batch norm of images in rows whose result is max-pooled by 2 x 2 at once: what is pooled is
// normalised in registers, and the gradient by x takes the pooled pixels' gradients to where these
// were, so that neither the normalised image nor its gradient is ever in memory.
#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/vector/batch_norm.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/normalisation_rows.h"
#include "runtime/kernels/vector/pooling.h"
#include "runtime/kernels/vector/two_by_two.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Of eight windows, their places 0 to 3 in row order as masks and as the bits of a number.
struct WindowPlaces {
  __m256 is_right, is_lower;

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
  __m256 Select(const Columns& upper, const Columns& lower) const {
    return _mm256_blendv_ps(_mm256_blendv_ps(upper.left, upper.right, is_right),
                            _mm256_blendv_ps(lower.left, lower.right, is_right), is_lower);
  }
};

// Visits x by channel and, in a channel's planes, by windows.
class PooledChannelKernel : public ChannelKernel {
 protected:
  explicit PooledChannelKernel(const NodeSpec& node)
      : ChannelKernel(node),
        height_(node.inputs[0].shape.dim(2) / 2),
        width_(node.inputs[0].shape.dim(3) / 2) {}

  // Calls body(windows, place of the upper row in x, place in what is pooled) for all windows of
  // the channel.
  template <typename Body>
  void ForWindows(int64_t c, const Body& body) const {
    ForRuns(c, [&](int64_t at) {
      ForWindowsOfRows(0, height_, width_, [&](const auto& windows, int64_t row, int64_t place) {
        body(windows, at + row * 4 * width_ + 2 * place, at / 4 + row * width_ + place);
      });
    });
  }
  // From a window's upper row to its lower one, in x.
  int64_t below() const { return 2 * width_; }

 private:
  const int64_t height_, width_;  // of what is pooled
};

// (x, gamma, beta) -> (y, mean, variance, taps).
class BatchNormMaxPoolKernel : public PooledChannelKernel {
 public:
  explicit BatchNormMaxPoolKernel(const NodeSpec& node)
      : PooledChannelKernel(node), relu_(node.attributes.Int("relu") != 0) {}

  void Run(const Arguments& a) override { relu_ ? Run<true>(a) : Run<false>(a); }

 private:
  template <bool kRelu>
  void Run(const Arguments& a) const {
    const float* x = a.in<float>(0);
    float* y = a.out<float>(0);
    auto* taps = a.out<uint8_t>(3);
    ForChannels([&, x, y, taps](int64_t c) {
      const Statistics own = StatisticsOf(x, c);
      a.out<float>(1)[c] = own.mean;
      a.out<float>(2)[c] = own.variance;
      const Normalised<kRelu> normalised(
          BatchAffine(a.in<float>(1)[c], a.in<float>(2)[c], own.mean, own.variance, epsilon_));
      ForWindows(c, [&](const auto& windows, int64_t in, int64_t out) {
        const Columns upper = normalised(windows.Load(x + in)),
                      lower = normalised(windows.Load(x + in + below()));
        const __m256 right_above = SecondIsLarger(upper.left, upper.right),
                     right_below = SecondIsLarger(lower.left, lower.right);
        const __m256 above = _mm256_blendv_ps(upper.left, upper.right, right_above),
                     beneath = _mm256_blendv_ps(lower.left, lower.right, right_below);
        const __m256 is_lower = SecondIsLarger(above, beneath);
        windows.StoreEach(y + out, _mm256_blendv_ps(above, beneath, is_lower));
        const WindowPlaces places{_mm256_blendv_ps(right_above, right_below, is_lower), is_lower};
        windows.StoreBytes(taps + out, places.taps());
      });
    });
  }

  // As the batch norm by itself makes it.
  template <bool kRelu>
  class Normalised {
   public:
    explicit Normalised(const BatchAffine& f)
        : slope_(_mm256_set1_ps(f.slope)), offset_(_mm256_set1_ps(f.offset)) {}

    Columns operator()(const Columns& x) const { return {One(x.left), One(x.right)}; }

   private:
    __m256 One(__m256 x) const {
      const __m256 y = _mm256_fmadd_ps(x, slope_, offset_);
      if constexpr (!kRelu) return y;
      return _mm256_andnot_ps(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_LE_OQ), y);
    }

    __m256 slope_, offset_;
  };

  const bool relu_;
};

// (x, gamma, mean, variance, dy, taps) -> (dx, dgamma, dbeta).
class BatchNormMaxPoolGradKernel : public PooledChannelKernel {
 public:
  explicit BatchNormMaxPoolGradKernel(const NodeSpec& node) : PooledChannelKernel(node) {}

  // x by dx: both sums of a channel come first.
  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(4);
    const auto* taps = a.in<uint8_t>(5);
    float* dx = a.out<float>(0);
    ForChannels([&, x, dy, taps, dx](int64_t c) {
      const __m256 means = _mm256_set1_ps(a.in<float>(2)[c]);
      Sum sum, projection;
      ForWindows(c, [&](const auto& windows, int64_t in, int64_t out) {
        const WindowPlaces places = WindowPlaces::Of(windows.LoadBytes(taps + out));
        const __m256 gradient = windows.LoadEach(dy + out);
        const __m256 pooled = places.Select(windows.Load(x + in), windows.Load(x + in + below()));
        sum.Add(gradient);
        projection.AddProduct(gradient, _mm256_sub_ps(pooled, means));
      });
      const BatchGradient g(a.in<float>(1)[c], a.in<float>(3)[c], epsilon_, sum.Total(),
                            projection.Total(), count());
      a.out<float>(1)[c] = static_cast<float>(g.dgamma);
      a.out<float>(2)[c] = static_cast<float>(g.dbeta);
      const __m256 slope = _mm256_set1_ps(g.slope), along = _mm256_set1_ps(g.along),
                   offset = _mm256_set1_ps(g.offset);
      const auto gradient_of = [&](__m256 value, __m256 of_result) {
        const __m256 rest = _mm256_fmadd_ps(along, _mm256_sub_ps(value, means), offset);
        return _mm256_fmadd_ps(slope, of_result, rest);
      };
      ForWindows(c, [&](const auto& windows, int64_t in, int64_t out) {
        const WindowPlaces places = WindowPlaces::Of(windows.LoadBytes(taps + out));
        const __m256 gradient = windows.LoadEach(dy + out);
        const auto row = [&](int64_t at, __m256 passed) {
          const Columns values = windows.Load(x + at);
          windows.Store(dx + at,
                        {gradient_of(values.left, _mm256_andnot_ps(places.is_right, passed)),
                         gradient_of(values.right, _mm256_and_ps(places.is_right, passed))});
        };
        row(in, _mm256_andnot_ps(places.is_lower, gradient));
        row(in + below(), _mm256_and_ps(places.is_lower, gradient));
      });
    });
  }
};

bool IsPooledByTwo(const NodeSpec& node) {
  return FitsWithTaps(node) && IsTwoByTwo(PoolingOf(node.attributes), node.inputs[0].shape);
}

}  // namespace

std::unique_ptr<Primitive> BatchNormMaxPool2d(const NodeSpec& node) {
  return IsPooledByTwo(node) ? std::make_unique<BatchNormMaxPoolKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> BatchNormMaxPool2dGrad(const NodeSpec& node) {
  return IsPooledByTwo(node) ? std::make_unique<BatchNormMaxPoolGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

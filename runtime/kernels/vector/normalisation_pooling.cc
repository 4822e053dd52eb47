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
        const WindowPlaces places = WindowPlaces::OfLargest(upper, lower);
        windows.StoreEach(y + out, places.Select(upper, lower));
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
      const RowGradient gradient_of(g, means);
      ForWindows(c, [&](const auto& windows, int64_t in, int64_t out) {
        const WindowPlaces places = WindowPlaces::Of(windows.LoadBytes(taps + out));
        const __m256 gradient = windows.LoadEach(dy + out);
        const auto row = [&](int64_t at, const Columns& passed) {
          const Columns values = windows.Load(x + at);
          windows.Store(dx + at, {gradient_of(values.left, passed.left),
                                  gradient_of(values.right, passed.right)});
        };
        row(in, places.InUpper(gradient));
        row(in + below(), places.InLower(gradient));
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

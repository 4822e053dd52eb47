// Layer norm, a row at a time. Sums are made in double. Those down the rows, for gamma and beta,
// are made over blocks of a fixed number of rows and then over the blocks, in order.
#include <algorithm>
#include <cmath>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

class RowKernel : public VectorPrimitive {
 protected:
  explicit RowKernel(const NodeSpec& node)
      : width_(node.inputs[0].shape.dim(-1)),
        rows_(node.inputs[0].shape.elements() / width_),
        epsilon_(node.attributes.Real("epsilon")) {}

  float Rstd(double variance) const {
    return static_cast<float>(1.0 / std::sqrt(variance + epsilon_));
  }
  double Mean(const Sum& sum) const { return sum.Total() / static_cast<double>(width_); }

  const int64_t width_, rows_;
  const double epsilon_;
};

// (x, gamma, beta) -> (y, mean, variance), the statistics per row.
class LayerNormKernel : public RowKernel {
 public:
  explicit LayerNormKernel(const NodeSpec& node) : RowKernel(node) {}

  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

  void Run(const Arguments& a) override {
    device::ParallelFor(rows_, width_, [&](int64_t r) { RunRow(a, r); });
  }

 private:
  void RunRow(const Arguments& a, int64_t r) const {
    const float *x = a.in<float>(0) + r * width_, *gamma = a.in<float>(1), *beta = a.in<float>(2);
    float* y = a.out<float>(0) + r * width_;
    Sum sum, squares;
    ForLanes(width_, [&](auto lanes, int64_t i) { sum.Add(lanes.Load(x + i)); });
    const auto mean = static_cast<float>(Mean(sum));
    const __m256 m = _mm256_set1_ps(mean);
    ForLanes(width_, [&](auto lanes, int64_t i) {
      const __m256 d = _mm256_sub_ps(lanes.LoadOr(x + i, m), m);
      squares.AddProduct(d, d);
    });
    const double variance = Mean(squares);
    a.out<float>(1)[r] = mean;
    a.out<float>(2)[r] = static_cast<float>(variance);
    const __m256 rstd = _mm256_set1_ps(Rstd(variance));
    ForLanes(width_, [&](auto lanes, int64_t i) {
      const __m256 n = _mm256_mul_ps(_mm256_sub_ps(lanes.Load(x + i), m), rstd);
      lanes.Store(y + i, _mm256_fmadd_ps(n, lanes.Load(gamma + i), lanes.Load(beta + i)));
    });
  }
};

// (x, gamma, mean, variance, dy) -> (dx, dgamma, dbeta).
class LayerNormGradKernel : public RowKernel {
 public:
  explicit LayerNormGradKernel(const NodeSpec& node)
      : RowKernel(node),
        blocks_((rows_ + kBlock - 1) / kBlock),
        padded_((width_ + kLane - 1) / kLane * kLane) {}

  // x or dy by dx, a row at a time.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  // For each block of rows its sums for gamma, then those for beta.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(blocks_ * 2 * padded_) * sizeof(double);
  }

  void Run(const Arguments& a) override {
    double* sums = static_cast<double*>(a.scratch);
    device::ParallelFor(blocks_, kBlock * width_ * 2, [&](int64_t b) {
      double* own = sums + b * 2 * padded_;
      std::fill_n(own, 2 * padded_, 0.0);
      for (int64_t r = b * kBlock; r < std::min(rows_, (b + 1) * kBlock); ++r) RunRow(a, r, own);
    });
    for (int64_t b = 1; b < blocks_; ++b) {
      const double* more = sums + b * 2 * padded_;
      for (int64_t i = 0; i < 2 * padded_; ++i) sums[i] += more[i];
    }
    for (int64_t i = 0; i < width_; ++i) {
      a.out<float>(1)[i] = static_cast<float>(sums[i]);
      a.out<float>(2)[i] = static_cast<float>(sums[padded_ + i]);
    }
  }

 private:
  static constexpr int64_t kBlock = 32;  // rows

  // With w = dy gamma and d = x - mean: dx = rstd (w - mean of w - d rstd^2 mean of w d).
  void RunRow(const Arguments& a, int64_t r, double* sums) const {
    const float *x = a.in<float>(0) + r * width_, *gamma = a.in<float>(1),
                *dy = a.in<float>(4) + r * width_;
    float* dx = a.out<float>(0) + r * width_;
    const float rstd = Rstd(static_cast<double>(a.in<float>(3)[r]));
    const __m256 mean = _mm256_set1_ps(a.in<float>(2)[r]), scale = _mm256_set1_ps(rstd);
    Sum sum, products;
    ForLanes(width_, [&](auto lanes, int64_t i) {
      const __m256 slope = lanes.Load(dy + i), d = _mm256_sub_ps(lanes.Load(x + i), mean);
      const __m256 w = _mm256_mul_ps(slope, lanes.Load(gamma + i));
      sum.Add(w);
      products.AddProduct(w, d);
      AddTo(sums + i, _mm256_mul_ps(_mm256_mul_ps(slope, d), scale));
      AddTo(sums + padded_ + i, slope);
    });
    const __m256 offset = _mm256_set1_ps(static_cast<float>(Mean(sum)));
    const __m256 along = _mm256_set1_ps(
        static_cast<float>(Mean(products) * static_cast<double>(rstd) * static_cast<double>(rstd)));
    ForLanes(width_, [&](auto lanes, int64_t i) {
      const __m256 d = _mm256_sub_ps(lanes.Load(x + i), mean);
      const __m256 w = _mm256_mul_ps(lanes.Load(dy + i), lanes.Load(gamma + i));
      const __m256 rest = _mm256_fnmadd_ps(along, d, _mm256_sub_ps(w, offset));
      lanes.Store(dx + i, _mm256_mul_ps(scale, rest));
    });
  }

  const int64_t blocks_;
  const int64_t padded_;  // floats of a row, whole vectors
};

}  // namespace

std::unique_ptr<Primitive> LayerNorm(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<LayerNormKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> LayerNormGrad(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<LayerNormGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

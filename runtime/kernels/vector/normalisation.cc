// Batch norm by the batch's own statistics. As in the reference kernel sums are made in double, in
// the order of the samples; only what is summed side by side differs.
#include <cmath>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// The sum of body(i) over [0, n), in double.
template <typename Body>
inline double SumOver(int64_t n, const Body& body) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += body(i);
  return sum;
}

// Visits x [N, C, H, W] by channel: in each of N samples a run of H * W elements.
class ChannelKernel : public VectorPrimitive {
 protected:
  explicit ChannelKernel(const NodeSpec& node)
      : batch_(node.inputs[0].shape.dim(0)),
        channels_(node.inputs[0].shape.dim(1)),
        plane_(node.inputs[0].shape.Product(2, node.inputs[0].shape.rank())),
        epsilon_(node.attributes.Real("epsilon")) {}

  double count() const { return static_cast<double>(batch_ * plane_); }

  template <typename Body>
  void ForChannels(const Body& body) const {
    device::ParallelFor(channels_, batch_ * plane_, body);
  }

  // Calls body(index of a run's first element) for the channel's runs.
  template <typename Body>
  void ForRuns(int64_t c, const Body& body) const {
    for (int64_t n = 0; n < batch_; ++n) body((n * channels_ + c) * plane_);
  }

  const int64_t batch_, channels_, plane_;
  const double epsilon_;
};

// (x, gamma, beta) -> (y, mean, variance).
class BatchNormKernel : public ChannelKernel {
 public:
  explicit BatchNormKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    ForChannels([&](int64_t c) {
      const float* const x = a.in<float>(0);
      double sum = 0;
      ForRuns(c, [&](int64_t at) {
        const float* run = x + at;
        sum += SumOver(plane_, [run](int64_t i) { return static_cast<double>(run[i]); });
      });
      const double mean = sum / count();
      double squares = 0;
      ForRuns(c, [&](int64_t at) {
        const float* run = x + at;
        squares += SumOver(plane_, [run, mean](int64_t i) {
          const double d = static_cast<double>(run[i]) - mean;
          return d * d;
        });
      });
      const double variance = squares / count();
      a.out<float>(1)[c] = static_cast<float>(mean);
      a.out<float>(2)[c] = static_cast<float>(variance);
      const double gamma = a.in<float>(1)[c], beta = a.in<float>(2)[c];
      const double rstd = 1.0 / std::sqrt(variance + epsilon_);
      Apply(a, c, static_cast<float>(gamma * rstd), static_cast<float>(beta - mean * gamma * rstd));
    });
  }

 private:
  void Apply(const Arguments& a, int64_t c, float slope, float offset) const {
    ForRuns(c, [&](int64_t at) {
      const float* __restrict x = a.in<float>(0) + at;
      float* __restrict y = a.out<float>(0) + at;
      const int64_t plane = plane_;
      for (int64_t i = 0; i < plane; ++i) y[i] = x[i] * slope + offset;
    });
  }
};

// (x, gamma, mean, variance, dy) -> (dx, dgamma, dbeta); dx = slope * dy + along * x + offset, for
// the statistics depend on x (Ioffe and Szegedy, 2015).
class BatchNormGradKernel : public ChannelKernel {
 public:
  explicit BatchNormGradKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    ForChannels([&](int64_t c) {
      const double mean = a.in<float>(2)[c];
      const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<float>(3)[c]) + epsilon_);
      double dbeta = 0, projection = 0;
      ForRuns(c, [&](int64_t at) {
        const float *x = a.in<float>(0) + at, *dy = a.in<float>(4) + at;
        dbeta += SumOver(plane_, [dy](int64_t i) { return static_cast<double>(dy[i]); });
        projection += SumOver(plane_, [x, dy, mean](int64_t i) {
          return static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean);
        });
      });
      const double dgamma = rstd * projection;
      a.out<float>(1)[c] = static_cast<float>(dgamma);
      a.out<float>(2)[c] = static_cast<float>(dbeta);
      const double slope = static_cast<double>(a.in<float>(1)[c]) * rstd;
      const double along = -slope * dgamma * rstd / count();
      Apply(a, c, slope, along, -slope * dbeta / count() - along * mean);
    });
  }

 private:
  void Apply(const Arguments& a, int64_t c, double slope, double along, double offset) const {
    ForRuns(c, [&](int64_t at) {
      const float* __restrict x = a.in<float>(0) + at, * __restrict dy = a.in<float>(4) + at;
      float* __restrict dx = a.out<float>(0) + at;
      const int64_t plane = plane_;
      for (int64_t i = 0; i < plane; ++i) {
        dx[i] = static_cast<float>(slope * static_cast<double>(dy[i]) +
                                   along * static_cast<double>(x[i]) + offset);
      }
    });
  }
};

// Runs of fewer elements than this are no vectors.
constexpr int64_t kLeastRun = 8;

bool HasRuns(const tensor::Shape& x) {
  return x.Product(2, x.rank()) >= kLeastRun;
}

}  // namespace

std::unique_ptr<Primitive> BatchNorm(const NodeSpec& node) {
  if (!Fits(node) || !HasRuns(node.inputs[0].shape)) return nullptr;
  return std::make_unique<BatchNormKernel>(node);
}

std::unique_ptr<Primitive> BatchNormGrad(const NodeSpec& node) {
  if (!Fits(node) || !HasRuns(node.inputs[0].shape)) return nullptr;
  return std::make_unique<BatchNormGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector

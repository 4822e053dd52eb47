// Batch norm by the batch's own statistics, and by others. As in the reference kernel sums are made
// in double, in the order of the samples; what is summed side by side differs, and the batch's own
// statistics take one pass.
#include <cmath>

#include "runtime/kernels/vector/batch_norm.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/normalisation_rows.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// How batch norm's result follows from statistics, with an addend, behind the other inputs, and
// ReLU where the node has them.
class NormaliseKernel : public ChannelKernel {
 public:
  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

 protected:
  NormaliseKernel(const NodeSpec& node, size_t addend)
      : ChannelKernel(node),
        addend_(static_cast<int>(addend)),
        has_addend_(node.inputs.size() > addend),
        relu_(node.attributes.Int("relu") != 0) {}

  void Normalise(const Arguments& a, int64_t c, float mean, float variance) const {
    const BatchAffine f(a.in<float>(1)[c], a.in<float>(2)[c], mean, variance, epsilon_);
    ForRuns(c, [&](int64_t at) {
      const float* x = a.in<float>(0) + at;
      float* y = a.out<float>(0) + at;
      const int64_t plane = plane_;
#pragma GCC ivdep
      for (int64_t i = 0; i < plane; ++i) y[i] = std::fma(x[i], f.slope, f.offset);
      if (has_addend_) {
        const float* addend = a.in<float>(addend_) + at;
#pragma GCC ivdep
        for (int64_t i = 0; i < plane; ++i) y[i] += addend[i];
      }
      if (!relu_) return;
      for (int64_t i = 0; i < plane; ++i) y[i] = y[i] <= 0.0F ? 0.0F : y[i];
    });
  }

 private:
  const int addend_;
  const bool has_addend_, relu_;
};

// (x, gamma, beta[, addend]) -> (y, mean, variance).
class BatchNormKernel : public NormaliseKernel {
 public:
  explicit BatchNormKernel(const NodeSpec& node) : NormaliseKernel(node, 3) {}

  void Run(const Arguments& a) override {
    ForChannels([&](int64_t c) {
      const Statistics own = StatisticsOf(a.in<float>(0), c);
      a.out<float>(1)[c] = own.mean;
      a.out<float>(2)[c] = own.variance;
      Normalise(a, c, own.mean, own.variance);
    });
  }
};

// (x, gamma, beta, mean, variance[, addend]) -> y.
class BatchNormAgainKernel : public NormaliseKernel {
 public:
  explicit BatchNormAgainKernel(const NodeSpec& node) : NormaliseKernel(node, 5) {}

  void Run(const Arguments& a) override {
    ForChannels([&](int64_t c) { Normalise(a, c, a.in<float>(3)[c], a.in<float>(4)[c]); });
  }
};

// x -> what a shard adds to the sums of all: see the reference kernel.
class BatchMomentsKernel : public ChannelKernel {
 public:
  explicit BatchMomentsKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    double* const sums = a.out<double>(0);
    ForChannels([&](int64_t c) {
      Sum sum, squares;
      ForRuns(c, [&](int64_t at) {
        const float* x = a.in<float>(0) + at;
        ForLanes(plane_, [&](auto lanes, int64_t i) {
          const __m256 values = lanes.Load(x + i);
          sum.Add(values);
          squares.AddProduct(values, values);
        });
      });
      sums[c] = sum.Total();
      sums[channels_ + c] = squares.Total();
    });
    sums[2 * channels_] = count();
  }
};

// (x, mean, variance, dy) -> (what a shard adds to the sums of the gradient by x, dgamma, dbeta).
class BatchNormSumsKernel : public ChannelKernel {
 public:
  explicit BatchNormSumsKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    double* const sums = a.out<double>(0);
    ForChannels([&](int64_t c) {
      const __m256 means = _mm256_set1_ps(a.in<float>(1)[c]);
      Sum sum, projection;
      ForRuns(c, [&](int64_t at) {
        const float *x = a.in<float>(0) + at, *dy = a.in<float>(3) + at;
        ForLanes(plane_, [&](auto lanes, int64_t i) {
          const __m256 gradient = lanes.Load(dy + i);
          sum.Add(gradient);
          projection.AddProduct(gradient, _mm256_sub_ps(lanes.Load(x + i), means));
        });
      });
      sums[c] = sum.Total();
      sums[channels_ + c] = projection.Total();
      const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<float>(2)[c]) + epsilon_);
      a.out<float>(1)[c] = static_cast<float>(rstd * sums[channels_ + c]);
      a.out<float>(2)[c] = static_cast<float>(sums[c]);
    });
    sums[2 * channels_] = count();
  }
};

// (x, gamma, mean, variance, dy, those sums of all shards) -> dx.
class BatchNormSynchronisedGradKernel : public ChannelKernel {
 public:
  explicit BatchNormSynchronisedGradKernel(const NodeSpec& node) : ChannelKernel(node) {}

  // x or dy by dx.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override {
    const double* const sums = a.in<double>(5);
    ForChannels([&](int64_t c) {
      const BatchGradient g(a.in<float>(1)[c], a.in<float>(3)[c], epsilon_, sums[c],
                            sums[channels_ + c], sums[2 * channels_]);
      const RowGradient gradient(g, _mm256_set1_ps(a.in<float>(2)[c]));
      ForRuns(c, [&](int64_t at) {
        const float *x = a.in<float>(0) + at, *dy = a.in<float>(4) + at;
        float* dx = a.out<float>(0) + at;
        ForLanes(plane_, [&](auto lanes, int64_t i) {
          lanes.Store(dx + i, gradient(lanes.Load(x + i), lanes.Load(dy + i)));
        });
      });
    });
  }
};

// (x, gamma, mean, variance, dy) -> (dx, dgamma, dbeta); with ReLU behind it also from beta, which
// says where y was positive. With statistics of the batch itself (kOwnStatistics), or with others.
template <bool kOwnStatistics>
class BatchNormGradKernel : public ChannelKernel {
 public:
  explicit BatchNormGradKernel(const NodeSpec& node)
      : ChannelKernel(node), relu_(node.attributes.Int("relu") != 0) {}

  // x or dy by dx: both sums of a channel come first.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override { relu_ ? Run<true>(a) : Run<false>(a); }

 private:
  template <bool kRelu>
  void Run(const Arguments& a) const {
    ForChannels([&](int64_t c) {
      const float gamma = a.in<float>(1)[c], mean = a.in<float>(2)[c], variance = a.in<float>(3)[c];
      const BatchAffine f(gamma, kRelu ? a.in<float>(5)[c] : 0.0F, mean, variance, epsilon_);
      const __m256 means = _mm256_set1_ps(mean);
      const Mask<kRelu> mask(f);
      Sum sum, projection;
      ForRuns(c, [&](int64_t at) {
        const float *x = a.in<float>(0) + at, *dy = a.in<float>(4) + at;
        ForLanes(plane_, [&](auto lanes, int64_t i) {
          const __m256 values = lanes.Load(x + i), passed = mask.Pass(values, lanes.Load(dy + i));
          sum.Add(passed);
          projection.AddProduct(passed, _mm256_sub_ps(values, means));
        });
      });
      const BatchGradient g(gamma, variance, epsilon_, sum.Total(), projection.Total(), count());
      a.out<float>(1)[c] = static_cast<float>(g.dgamma);
      a.out<float>(2)[c] = static_cast<float>(g.dbeta);
      const RowGradient gradient(g, means);
      const __m256 slope = _mm256_set1_ps(g.slope);
      ForRuns(c, [&](int64_t at) {
        const float *x = a.in<float>(0) + at, *dy = a.in<float>(4) + at;
        float* dx = a.out<float>(0) + at;
        ForLanes(plane_, [&](auto lanes, int64_t i) {
          const __m256 values = lanes.Load(x + i), passed = mask.Pass(values, lanes.Load(dy + i));
          if constexpr (kOwnStatistics) {
            lanes.Store(dx + i, gradient(values, passed));
          } else {
            lanes.Store(dx + i, _mm256_mul_ps(slope, passed));
          }
        });
      });
    });
  }

  // Lets a gradient pass where the ReLU behind, if there is one, let its value pass.
  template <bool kRelu>
  class Mask {
   public:
    explicit Mask(const BatchAffine& f)
        : slope_(_mm256_set1_ps(f.slope)), offset_(_mm256_set1_ps(f.offset)) {}

    __m256 Pass(__m256 x, __m256 dy) const {
      if constexpr (!kRelu) return dy;
      const __m256 y = _mm256_fmadd_ps(x, slope_, offset_);
      return _mm256_and_ps(dy, _mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_GT_OQ));
    }

   private:
    __m256 slope_, offset_;
  };

  const bool relu_;
};

// Runs of fewer elements than this are no vectors.
constexpr int64_t kLeastRun = 8;

bool HasLongRuns(const NodeSpec& node) {
  const tensor::Shape& x = node.inputs[0].shape;
  return x.Product(2, x.rank()) >= kLeastRun;
}

bool HasRuns(const NodeSpec& node) {
  return Fits(node) && HasLongRuns(node);
}

// The same of an op whose sums over shards are f64.
bool HasRunsAndSums(const NodeSpec& node) {
  return FitsWithSums(node) && IsRowMajor(node) && HasLongRuns(node);
}

}  // namespace

std::unique_ptr<Primitive> BatchMoments(const NodeSpec& node) {
  if (!HasRunsAndSums(node)) return BatchMomentsOfBlocks(node);
  return std::make_unique<BatchMomentsKernel>(node);
}

std::unique_ptr<Primitive> BatchNorm(const NodeSpec& node) {
  if (!HasRuns(node)) return BatchNormOfBlocks(node);
  return std::make_unique<BatchNormKernel>(node);
}

std::unique_ptr<Primitive> BatchNormAgain(const NodeSpec& node) {
  if (!HasRuns(node)) return BatchNormAgainOfBlocks(node);
  return std::make_unique<BatchNormAgainKernel>(node);
}

std::unique_ptr<Primitive> BatchNormAddReluGrad(const NodeSpec& node) {
  return BatchNormAddReluGradOfBlocks(node);
}

std::unique_ptr<Primitive> BatchNormGrad(const NodeSpec& node) {
  if (!HasRuns(node)) return BatchNormGradOfBlocks(node);
  return std::make_unique<BatchNormGradKernel<true>>(node);
}

std::unique_ptr<Primitive> BatchNormInferenceGrad(const NodeSpec& node) {
  return HasRuns(node) ? std::make_unique<BatchNormGradKernel<false>>(node) : nullptr;
}

std::unique_ptr<Primitive> BatchNormSums(const NodeSpec& node) {
  if (!HasRunsAndSums(node)) return BatchNormSumsOfBlocks(node);
  return std::make_unique<BatchNormSumsKernel>(node);
}

std::unique_ptr<Primitive> BatchNormSynchronisedGrad(const NodeSpec& node) {
  if (!HasRunsAndSums(node)) return BatchNormSynchronisedGradOfBlocks(node);
  return std::make_unique<BatchNormSynchronisedGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector

#include <algorithm>
#include <cmath>

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// Visits x [N, C] or [N, C, H, W] by channel: in each of N samples a run of H * W elements.
class ChannelKernel : public ReferencePrimitive {
 protected:
  explicit ChannelKernel(const NodeSpec& node)
      : batch_(InShape(node, 0).dim(0)),
        channels_(InShape(node, 0).dim(1)),
        plane_(InShape(node, 0).Product(2, InShape(node, 0).rank())),
        epsilon_(node.attributes.Real("epsilon")) {}

  double count() const { return static_cast<double>(batch_ * plane_); }

  template <typename Body>
  void ForChannels(const Body& body) const {
    ParallelFor(channels_, batch_ * plane_, body);
  }

  // The sum of body(index into x) over channel c, samples in order.
  template <typename Body>
  double SumChannel(int64_t c, const Body& body) const {
    double sum = 0;
    for (int64_t n = 0; n < batch_; ++n) {
      const int64_t base = (n * channels_ + c) * plane_;
      sum += SumOver(plane_, [&](int64_t i) { return body(base + i); });
    }
    return sum;
  }

  template <typename Body>
  void ForElements(int64_t c, const Body& body) const {
    for (int64_t n = 0; n < batch_; ++n) {
      const int64_t base = (n * channels_ + c) * plane_;
      for (int64_t i = base; i < base + plane_; ++i) body(i);
    }
  }

  int64_t batch_, channels_, plane_;
  double epsilon_;
};

// y = x * slope + offset, for one channel.
template <typename T>
struct Affine {
  T slope, offset;

  Affine(double gamma, double beta, double mean, double rstd)
      : slope(static_cast<T>(gamma * rstd)), offset(static_cast<T>(beta - mean * gamma * rstd)) {}
  T operator()(T x) const { return x * slope + offset; }
};

// From the statistics as they are kept, so that the gradient finds the same y again.
template <typename T>
Affine<T> BatchAffine(T gamma, T beta, T mean, T variance, double epsilon) {
  return {gamma, beta, mean, 1.0 / std::sqrt(static_cast<double>(variance) + epsilon)};
}

// How batch norm's result follows from statistics, with an addend, behind the other inputs, and
// ReLU where the node has them.
template <typename T>
class NormaliseKernel : public ChannelKernel {
 protected:
  NormaliseKernel(const NodeSpec& node, size_t addend)
      : ChannelKernel(node),
        addend_(static_cast<int>(addend)),
        has_addend_(node.inputs.size() > addend),
        relu_(node.attributes.Int("relu") != 0) {}

  void Normalise(const Arguments& a, int64_t c, T mean, T variance) const {
    const T *x = a.in<T>(0), *addend = has_addend_ ? a.in<T>(addend_) : nullptr;
    T* y = a.out<T>(0);
    const auto f = BatchAffine(a.in<T>(1)[c], a.in<T>(2)[c], mean, variance, epsilon_);
    ForElements(c, [&](int64_t i) {
      const T sum = f(x[i]) + (addend != nullptr ? addend[i] : T(0));
      y[i] = relu_ ? ReluBody()(sum) : sum;
    });
  }

 private:
  int addend_;
  bool has_addend_, relu_;
};

// (x, gamma, beta[, addend]) -> (y, mean, variance).
template <typename T>
class BatchNormKernel : public NormaliseKernel<T> {
 public:
  explicit BatchNormKernel(const NodeSpec& node) : NormaliseKernel<T>(node, 3) {}

  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T *means = a.out<T>(1), *variances = a.out<T>(2);
    this->ForChannels([&](int64_t c) {
      const double mean = this->SumChannel(c, [&](int64_t i) { return x[i]; }) / this->count();
      const double variance = this->SumChannel(c, [&](int64_t i) {
        const double d = static_cast<double>(x[i]) - mean;
        return d * d;
      }) / this->count();
      means[c] = static_cast<T>(mean);
      variances[c] = static_cast<T>(variance);
      this->Normalise(a, c, means[c], variances[c]);
    });
  }
};

// (x, gamma, beta, mean, variance[, addend]) -> y.
template <typename T>
class BatchNormAgainKernel : public NormaliseKernel<T> {
 public:
  explicit BatchNormAgainKernel(const NodeSpec& node) : NormaliseKernel<T>(node, 5) {}

  void Run(const Arguments& a) override {
    this->ForChannels([&](int64_t c) { this->Normalise(a, c, a.in<T>(3)[c], a.in<T>(4)[c]); });
  }
};

// (x, gamma, mean, variance, dy) -> (dx, dgamma, dbeta). With statistics of the batch itself
// (kOwnStatistics) they depend on x too, which takes the mean and the projection on x out of dx
// (Ioffe and Szegedy, 2015). With ReLU behind it the node has beta as well, from which it is known
// where y was positive.
template <typename T, bool kOwnStatistics>
class BatchNormGradKernelOf : public ChannelKernel {
 public:
  explicit BatchNormGradKernelOf(const NodeSpec& node)
      : ChannelKernel(node), relu_(node.attributes.Int("relu") != 0) {}

  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T* dx = a.out<T>(0);
    ForChannels([&](int64_t c) {
      const double mean = a.in<T>(2)[c];
      const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<T>(3)[c]) + epsilon_);
      const auto f = BatchAffine(a.in<T>(1)[c], relu_ ? a.in<T>(5)[c] : T(0), a.in<T>(2)[c],
                                 a.in<T>(3)[c], epsilon_);
      const auto dy = [&](int64_t i) {
        const T gradient = a.in<T>(4)[i];
        return static_cast<double>(relu_ ? ReluGradBody()(f(x[i]), gradient) : gradient);
      };
      const double dbeta = SumChannel(c, dy);
      const double dgamma = rstd * SumChannel(c, [&](int64_t i) {
                              return dy(i) * (static_cast<double>(x[i]) - mean);
                            });
      a.out<T>(1)[c] = static_cast<T>(dgamma);
      a.out<T>(2)[c] = static_cast<T>(dbeta);
      const double slope = static_cast<double>(a.in<T>(1)[c]) * rstd;
      if constexpr (!kOwnStatistics) {
        ForElements(c, [&](int64_t i) { dx[i] = static_cast<T>(slope * dy(i)); });
        return;
      }
      // dx = slope * dy + along * x + offset
      const double along = -slope * dgamma * rstd / count();
      const double offset = -slope * dbeta / count() - along * mean;
      ForElements(c, [&](int64_t i) {
        dx[i] = static_cast<T>(slope * dy(i) + along * static_cast<double>(x[i]) + offset);
      });
    });
  }

 private:
  bool relu_;
};

template <typename T>
using BatchNormGradKernel = BatchNormGradKernelOf<T, true>;
template <typename T>
using BatchNormInferenceGradKernel = BatchNormGradKernelOf<T, false>;

// (x, gamma, mean, variance, y, dy[, dy2]) -> (dx, dgamma, dbeta, daddend), of which the last is
// what the positive part y lets pass, and the gradient of the batch norm before it, too.
template <typename T>
class BatchNormAddReluGradKernel : public BatchNormGradKernel<T> {
 public:
  explicit BatchNormAddReluGradKernel(const NodeSpec& node)
      : BatchNormGradKernel<T>(node),
        elements_(InShape(node, 0).elements()),
        has_second_(node.inputs.size() == 7) {}

  void Run(const Arguments& a) override {
    const T *y = a.in<T>(4), *dy = a.in<T>(5), *second = has_second_ ? a.in<T>(6) : nullptr;
    T* passed = a.out<T>(3);
    for (int64_t i = 0; i < elements_; ++i)
      passed[i] = ReluGradBody()(y[i], second != nullptr ? dy[i] + second[i] : dy[i]);
    const void* inputs[] = {a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], passed};
    BatchNormGradKernel<T>::Run({inputs, a.outputs, a.scratch, a.context});
  }

 private:
  const int64_t elements_;
  const bool has_second_;
};

// x -> what a shard adds to batch_statistics' sums: of each channel the elements, then their
// squares, then their number. In double the cancellation of a variance made of them loses less than
// x has lost by being rounded to a float, wherever its mean lies.
template <typename T>
class BatchMomentsKernel : public ChannelKernel {
 public:
  explicit BatchMomentsKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    double* sums = a.out<double>(0);
    ForChannels([&](int64_t c) {
      sums[c] = SumChannel(c, [&](int64_t i) { return x[i]; });
      sums[channels_ + c] = SumChannel(c, [&](int64_t i) {
        const auto value = static_cast<double>(x[i]);
        return value * value;
      });
    });
    sums[2 * channels_] = count();
  }
};

// Those sums of all shards -> (mean, variance, unbiased variance).
template <typename T>
class BatchStatisticsKernel : public ReferencePrimitive {
 public:
  explicit BatchStatisticsKernel(const NodeSpec& node) : channels_(OutShape(node, 0).dim(0)) {}

  void Run(const Arguments& a) override {
    const double* sums = a.in<double>(0);
    const double count = sums[2 * channels_];
    for (int64_t c = 0; c < channels_; ++c) {
      const double mean = sums[c] / count;
      double squares = sums[channels_ + c] - sums[c] * mean;
      if (squares < 0) squares = 0;  // what is no number stays
      a.out<T>(0)[c] = static_cast<T>(mean);
      a.out<T>(1)[c] = static_cast<T>(squares / count);
      a.out<T>(2)[c] = static_cast<T>(squares / std::max(count - 1, 1.0));
    }
  }

 private:
  int64_t channels_;
};

// (x, mean, variance, dy) -> (what a shard adds to the sums of the gradient by x, dgamma, dbeta).
template <typename T>
class BatchNormSumsKernel : public ChannelKernel {
 public:
  explicit BatchNormSumsKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *dy = a.in<T>(3);
    double* sums = a.out<double>(0);
    ForChannels([&](int64_t c) {
      const double mean = a.in<T>(1)[c];
      const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<T>(2)[c]) + epsilon_);
      const double sum = SumChannel(c, [&](int64_t i) { return dy[i]; });
      const double projection = SumChannel(c, [&](int64_t i) {
        return static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean);
      });
      sums[c] = sum;
      sums[channels_ + c] = projection;
      a.out<T>(1)[c] = static_cast<T>(rstd * projection);
      a.out<T>(2)[c] = static_cast<T>(sum);
    });
    sums[2 * channels_] = count();
  }
};

// (x, gamma, mean, variance, dy, those sums of all shards) -> dx, as batch_norm_grad has it.
template <typename T>
class BatchNormSynchronisedGradKernel : public ChannelKernel {
 public:
  explicit BatchNormSynchronisedGradKernel(const NodeSpec& node) : ChannelKernel(node) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *dy = a.in<T>(4);
    const double* sums = a.in<double>(5);
    const double all = sums[2 * channels_];
    T* dx = a.out<T>(0);
    ForChannels([&](int64_t c) {
      const double mean = a.in<T>(2)[c];
      const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<T>(3)[c]) + epsilon_);
      const double slope = static_cast<double>(a.in<T>(1)[c]) * rstd;
      const double along = -slope * sums[channels_ + c] * rstd * rstd / all;
      const double offset = -slope * sums[c] / all - along * mean;
      ForElements(c, [&](int64_t i) {
        dx[i] = static_cast<T>(slope * static_cast<double>(dy[i]) +
                               along * static_cast<double>(x[i]) + offset);
      });
    });
  }
};

// Kernel<float> or Kernel<double> by the type of x, whatever the first output's is.
template <template <typename> class Kernel>
std::unique_ptr<Primitive> MakeRealOfInput(const NodeSpec& node) {
  if (node.inputs[0].dtype == DType::kF64) return std::make_unique<Kernel<double>>(node);
  return std::make_unique<Kernel<float>>(node);
}

// Rows of `width` elements.
class RowKernel : public ReferencePrimitive {
 protected:
  explicit RowKernel(const NodeSpec& node)
      : width_(InShape(node, 0).dim(-1)),
        rows_(InShape(node, 0).elements() / width_),
        epsilon_(node.attributes.Real("epsilon")) {}

  int64_t width_, rows_;
  double epsilon_;
};

// (x, gamma, beta) -> (y, mean, variance), the statistics per row.
template <typename T>
class LayerNormKernel : public RowKernel {
 public:
  explicit LayerNormKernel(const NodeSpec& node) : RowKernel(node) {}

  void Run(const Arguments& a) override {
    const T *gamma = a.in<T>(1), *beta = a.in<T>(2);
    ParallelFor(rows_, width_ * 4, [&](int64_t r) {
      const T* x = a.in<T>(0) + r * width_;
      T* y = a.out<T>(0) + r * width_;
      const auto width = static_cast<double>(width_);
      const double mean = SumOver(width_, [&](int64_t i) { return x[i]; }) / width;
      const double variance = SumOver(width_,
                                      [&](int64_t i) {
                                        const double d = static_cast<double>(x[i]) - mean;
                                        return d * d;
                                      }) /
                              width;
      a.out<T>(1)[r] = static_cast<T>(mean);
      a.out<T>(2)[r] = static_cast<T>(variance);
      const auto m = static_cast<T>(mean),
                 rstd = static_cast<T>(1.0 / std::sqrt(variance + epsilon_));
      for (int64_t i = 0; i < width_; ++i) y[i] = (x[i] - m) * rstd * gamma[i] + beta[i];
    });
  }
};

// (x, gamma, mean, variance, dy) -> (dx, dgamma, dbeta).
template <typename T>
class LayerNormGradKernel : public RowKernel {
 public:
  explicit LayerNormGradKernel(const NodeSpec& node) : RowKernel(node) {}

  void Run(const Arguments& a) override {
    ParallelFor(rows_, width_ * 4, [&](int64_t r) { InputRow(a, r); });
    const int64_t blocks = (width_ + kBlock - 1) / kBlock;
    ParallelFor(blocks, rows_ * kBlock, [&](int64_t b) { ParameterBlock(a, b * kBlock); });
  }

 private:
  static constexpr int64_t kBlock = 64;  // columns that one task sums down the rows

  double Rstd(const Arguments& a, int64_t r) const {
    return 1.0 / std::sqrt(static_cast<double>(a.in<T>(3)[r]) + epsilon_);
  }

  void InputRow(const Arguments& a, int64_t r) const {
    const T *x = a.in<T>(0) + r * width_, *gamma = a.in<T>(1), *dy = a.in<T>(4) + r * width_;
    T* dx = a.out<T>(0) + r * width_;
    const double mean = a.in<T>(2)[r], rstd = Rstd(a, r);
    const auto width = static_cast<double>(width_);
    const auto weighted = [&](int64_t i) {
      return static_cast<double>(dy[i]) * static_cast<double>(gamma[i]);
    };
    const double sum = SumOver(width_, weighted) / width;
    const double along =
        SumOver(width_,
                [&](int64_t i) { return weighted(i) * (static_cast<double>(x[i]) - mean); }) *
        rstd * rstd / width;
    for (int64_t i = 0; i < width_; ++i) {
      dx[i] =
          static_cast<T>(rstd * (weighted(i) - sum - along * (static_cast<double>(x[i]) - mean)));
    }
  }

  void ParameterBlock(const Arguments& a, int64_t begin) const {
    double dgamma[kBlock] = {}, dbeta[kBlock] = {};
    const int64_t count = std::min(kBlock, width_ - begin);
    for (int64_t r = 0; r < rows_; ++r) {
      const T *x = a.in<T>(0) + r * width_ + begin, *dy = a.in<T>(4) + r * width_ + begin;
      const double mean = a.in<T>(2)[r], rstd = Rstd(a, r);
      for (int64_t i = 0; i < count; ++i) {
        dgamma[i] += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean) * rstd;
        dbeta[i] += static_cast<double>(dy[i]);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      a.out<T>(1)[begin + i] = static_cast<T>(dgamma[i]);
      a.out<T>(2)[begin + i] = static_cast<T>(dbeta[i]);
    }
  }
};

}  // namespace

std::unique_ptr<Primitive> BatchMoments(const NodeSpec& node) {
  return MakeRealOfInput<BatchMomentsKernel>(node);
}
std::unique_ptr<Primitive> BatchNorm(const NodeSpec& node) {
  return MakeReal<BatchNormKernel>(node);
}
std::unique_ptr<Primitive> BatchNormAddReluGrad(const NodeSpec& node) {
  return MakeReal<BatchNormAddReluGradKernel>(node);
}
std::unique_ptr<Primitive> BatchNormAgain(const NodeSpec& node) {
  return MakeReal<BatchNormAgainKernel>(node);
}
std::unique_ptr<Primitive> BatchNormGrad(const NodeSpec& node) {
  return MakeReal<BatchNormGradKernel>(node);
}
std::unique_ptr<Primitive> BatchNormInferenceGrad(const NodeSpec& node) {
  return MakeReal<BatchNormInferenceGradKernel>(node);
}
std::unique_ptr<Primitive> BatchNormSums(const NodeSpec& node) {
  return MakeRealOfInput<BatchNormSumsKernel>(node);
}
std::unique_ptr<Primitive> BatchNormSynchronisedGrad(const NodeSpec& node) {
  return MakeReal<BatchNormSynchronisedGradKernel>(node);
}
std::unique_ptr<Primitive> BatchStatistics(const NodeSpec& node) {
  return MakeReal<BatchStatisticsKernel>(node);
}
std::unique_ptr<Primitive> LayerNorm(const NodeSpec& node) {
  return MakeReal<LayerNormKernel>(node);
}
std::unique_ptr<Primitive> LayerNormGrad(const NodeSpec& node) {
  return MakeReal<LayerNormGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

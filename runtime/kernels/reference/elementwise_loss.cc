// Losses that look at each element alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// (logits, labels) -> (sum of losses, number correct).
template <typename T>
class BinaryCrossEntropyKernel : public ReferencePrimitive {
 public:
  explicit BinaryCrossEntropyKernel(const NodeSpec& node) : n_(InShape(node, 0).elements()) {}

  void Run(const Arguments& a) override {
    double loss = 0, correct = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const double x = static_cast<double>(a.in<T>(0)[i]);
      const int32_t label = a.in<int32_t>(1)[i];
      if (label != 0 && label != 1) {
        loss = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      // log(1 + exp(-x)) for label 1, log(1 + exp(x)) for label 0, without overflow.
      loss += std::max(x, 0.0) - x * label + std::log1p(std::exp(-std::abs(x)));
      if ((x > 0) == (label == 1)) correct += 1;
    }
    *a.out<T>(0) = static_cast<T>(loss);
    *a.out<T>(1) = static_cast<T>(correct);
  }

 private:
  int64_t n_;
};

// (logits, labels, dloss) -> dloss (sigmoid(x) - label).
template <typename T>
class BinaryCrossEntropyGradKernel : public ReferencePrimitive {
 public:
  explicit BinaryCrossEntropyGradKernel(const NodeSpec& node) : n_(InShape(node, 0).elements()) {}

  void Run(const Arguments& a) override {
    const T dloss = *a.in<T>(2);
    ParallelFor(n_, 8, [&](int64_t i) {
      const T x = a.in<T>(0)[i];
      a.out<T>(0)[i] = dloss * (T(1) / (T(1) + std::exp(-x)) - static_cast<T>(a.in<int32_t>(1)[i]));
    });
  }

 private:
  int64_t n_;
};

template <typename T>
class SquaredErrorKernel : public ReferencePrimitive {
 public:
  explicit SquaredErrorKernel(const NodeSpec& node) : n_(InShape(node, 0).elements()) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *target = a.in<T>(1);
    *a.out<T>(0) = static_cast<T>(SumOver(n_, [&](int64_t i) {
      const double difference = static_cast<double>(x[i]) - static_cast<double>(target[i]);
      return difference * difference;
    }));
  }

 private:
  int64_t n_;
};

// (x, target, dloss) -> 2 dloss (x - target).
template <typename T>
class SquaredErrorGradKernel : public ReferencePrimitive {
 public:
  explicit SquaredErrorGradKernel(const NodeSpec& node) : n_(InShape(node, 0).elements()) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *target = a.in<T>(1);
    const T twice = T(2) * *a.in<T>(2);
    ParallelFor(n_, 1, [&](int64_t i) { a.out<T>(0)[i] = twice * (x[i] - target[i]); });
  }

 private:
  int64_t n_;
};

}  // namespace

std::unique_ptr<Primitive> BinaryCrossEntropy(const NodeSpec& node) {
  return MakeReal<BinaryCrossEntropyKernel>(node);
}
std::unique_ptr<Primitive> BinaryCrossEntropyGrad(const NodeSpec& node) {
  return MakeReal<BinaryCrossEntropyGradKernel>(node);
}
std::unique_ptr<Primitive> SquaredError(const NodeSpec& node) {
  return MakeReal<SquaredErrorKernel>(node);
}
std::unique_ptr<Primitive> SquaredErrorGrad(const NodeSpec& node) {
  return MakeReal<SquaredErrorGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

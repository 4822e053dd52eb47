// Softmax and its logarithm, over the last axis.
#include <algorithm>
#include <cmath>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

class RowsKernel : public ReferencePrimitive {
 protected:
  explicit RowsKernel(const NodeSpec& node)
      : classes_(InShape(node, 0).dim(-1)), rows_(InShape(node, 0).elements() / classes_) {}

  // Calls body(where a row begins).
  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelFor(rows_, classes_ * 8, [&](int64_t r) { body(r * classes_); });
  }

  const int64_t classes_, rows_;
};

// The largest of a row, and the sum of what the others' exponentials are beside its own.
struct Exponentials {
  double largest, sum = 0;

  template <typename T>
  Exponentials(const T* x, int64_t n) : largest(static_cast<double>(*std::max_element(x, x + n))) {
    for (int64_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(x[c]) - largest);
  }
};

template <typename T>
class SoftmaxKernel : public RowsKernel {
 public:
  explicit SoftmaxKernel(const NodeSpec& node) : RowsKernel(node) {}

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) {
      const T* x = a.in<T>(0) + at;
      T* y = a.out<T>(0) + at;
      const Exponentials e(x, classes_);
      for (int64_t c = 0; c < classes_; ++c)
        y[c] = static_cast<T>(std::exp(static_cast<double>(x[c]) - e.largest) / e.sum);
    });
  }
};

// (y, dy) -> dx = y * (dy - sum(y * dy)).
template <typename T>
class SoftmaxGradKernel : public RowsKernel {
 public:
  explicit SoftmaxGradKernel(const NodeSpec& node) : RowsKernel(node) {}

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) {
      const T *y = a.in<T>(0) + at, *dy = a.in<T>(1) + at;
      T* dx = a.out<T>(0) + at;
      const double sum = SumOver(classes_, [&](int64_t c) {
        return static_cast<double>(y[c]) * static_cast<double>(dy[c]);
      });
      for (int64_t c = 0; c < classes_; ++c) {
        dx[c] = static_cast<T>(static_cast<double>(y[c]) * (static_cast<double>(dy[c]) - sum));
      }
    });
  }
};

template <typename T>
class LogSoftmaxKernel : public RowsKernel {
 public:
  explicit LogSoftmaxKernel(const NodeSpec& node) : RowsKernel(node) {}

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) {
      const T* x = a.in<T>(0) + at;
      T* y = a.out<T>(0) + at;
      const Exponentials e(x, classes_);
      const double shift = e.largest + std::log(e.sum);
      for (int64_t c = 0; c < classes_; ++c)
        y[c] = static_cast<T>(static_cast<double>(x[c]) - shift);
    });
  }
};

// (y, dy) -> dx = dy - exp(y) * sum(dy).
template <typename T>
class LogSoftmaxGradKernel : public RowsKernel {
 public:
  explicit LogSoftmaxGradKernel(const NodeSpec& node) : RowsKernel(node) {}

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) {
      const T *y = a.in<T>(0) + at, *dy = a.in<T>(1) + at;
      T* dx = a.out<T>(0) + at;
      const T sum = static_cast<T>(SumOver(classes_, [&](int64_t c) { return dy[c]; }));
      for (int64_t c = 0; c < classes_; ++c) dx[c] = dy[c] - std::exp(y[c]) * sum;
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> LogSoftmax(const NodeSpec& node) {
  return MakeReal<LogSoftmaxKernel>(node);
}
std::unique_ptr<Primitive> LogSoftmaxGrad(const NodeSpec& node) {
  return MakeReal<LogSoftmaxGradKernel>(node);
}
std::unique_ptr<Primitive> Softmax(const NodeSpec& node) {
  return MakeReal<SoftmaxKernel>(node);
}
std::unique_ptr<Primitive> SoftmaxGrad(const NodeSpec& node) {
  return MakeReal<SoftmaxGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

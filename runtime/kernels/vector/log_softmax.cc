// The logarithm of softmax over the last axis, a row at a time.
#include <cmath>
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

class RowsKernel : public VectorPrimitive {
 protected:
  explicit RowsKernel(const NodeSpec& node)
      : classes_(node.inputs[0].shape.dim(-1)), rows_(node.inputs[0].shape.elements() / classes_) {}

  // Calls body(where a row begins).
  template <typename Body>
  void ForRows(const Body& body) const {
    device::ParallelFor(rows_, classes_ * 2, [&](int64_t r) { body(r * classes_); });
  }

  const int64_t classes_, rows_;
};

// x -> x - largest - log(sum of exp(x - largest)).
class LogSoftmaxKernel : public RowsKernel {
 public:
  explicit LogSoftmaxKernel(const NodeSpec& node) : RowsKernel(node) {}

  // A row by its own.
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) { RunRow(a.in<float>(0) + at, a.out<float>(0) + at); });
  }

 private:
  void RunRow(const float* x, float* y) const {
    const __m256 largest = _mm256_set1_ps(Largest(x, classes_));
    const __m256 nothing = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    Sum exponentials;
    ForLanes(classes_, [&](auto lanes, int64_t c) {
      exponentials.Add(Exp(_mm256_sub_ps(lanes.LoadOr(x + c, nothing), largest)));
    });
    const __m256 rest = _mm256_set1_ps(static_cast<float>(std::log(exponentials.Total())));
    ForLanes(classes_, [&](auto lanes, int64_t c) {
      lanes.Store(y + c, _mm256_sub_ps(_mm256_sub_ps(lanes.Load(x + c), largest), rest));
    });
  }
};

// (y, dy) -> dx = dy - exp(y) * sum(dy).
class LogSoftmaxGradKernel : public RowsKernel {
 public:
  explicit LogSoftmaxGradKernel(const NodeSpec& node) : RowsKernel(node) {}

  // Rows of y or dy by their own.
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }

  void Run(const Arguments& a) override {
    ForRows([&](int64_t at) {
      const float *y = a.in<float>(0) + at, *dy = a.in<float>(1) + at;
      float* dx = a.out<float>(0) + at;
      Sum all;
      ForLanes(classes_, [&](auto lanes, int64_t c) { all.Add(lanes.Load(dy + c)); });
      const __m256 sum = _mm256_set1_ps(static_cast<float>(all.Total()));
      // Exp goes up to numbers that logarithms of probabilities, at most 0, never reach.
      ForLanes(classes_, [&](auto lanes, int64_t c) {
        const __m256 softmax = Exp(lanes.Load(y + c));
        lanes.Store(dx + c, _mm256_fnmadd_ps(softmax, sum, lanes.Load(dy + c)));
      });
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> LogSoftmax(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<LogSoftmaxKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> LogSoftmaxGrad(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<LogSoftmaxGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

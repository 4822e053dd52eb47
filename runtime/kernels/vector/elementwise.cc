// ReLU, its gradient, sums, differences, products, quotients and multiples. The compiler makes
// vectors of these loops; the bodies are those of every back end.
#include "runtime/kernels/elementwise.h"

#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/device/wide.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Elements that one parallel task takes.
constexpr int64_t kChunk = 8192;

// All of them may write over any input: an element is made of those at its place. So that the
// compiler need not ask whether they overlap, the loops say that no turn needs another's result.
class ElementwisePrimitive : public VectorPrimitive {
 public:
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }
};

// Calls body(begin, end) for chunks of [0, n).
template <typename Body>
void ForChunks(int64_t n, const Body& body) {
  // Eight elements a cycle: memory is touched four times as fast as one by one.
  device::ParallelFor((n + kChunk - 1) / kChunk, kChunk / 4, [&](int64_t chunk) {
    body(chunk * kChunk, std::min(n, (chunk + 1) * kChunk));
  });
}

class ReluKernel : public ElementwisePrimitive {
 public:
  explicit ReluKernel(const NodeSpec& node) : n_(node.outputs[0].shape.elements()) {}
  void Run(const Arguments& a) override {
    ForChunks(n_, [&](int64_t begin, int64_t end) {
      const float* x = a.in<float>(0);
      float* y = a.out<float>(0);
      // What is no number is not less than zero, so it stays.
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
    });
  }

 private:
  const int64_t n_;
};

// (y, dy) or (y, dy, dy2), whose sum is the gradient.
class ReluGradKernel : public ElementwisePrimitive {
 public:
  explicit ReluGradKernel(const NodeSpec& node)
      : n_(node.outputs[0].shape.elements()), has_addend_(node.inputs.size() == 3) {}
  void Run(const Arguments& a) override { has_addend_ ? RunSum(a) : RunOne(a); }

 private:
  void RunOne(const Arguments& a) const {
    const float *y = a.in<float>(0), *dy = a.in<float>(1);
    float* dx = a.out<float>(0);
    ForChunks(n_, [&](int64_t begin, int64_t end) {
      device::WithWidestVectors([&] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) dx[i] = ReluGradBody()(y[i], dy[i]);
      });
    });
  }

  // Written out: the compiler would add under a branch for each element.
  void RunSum(const Arguments& a) const {
    const float *y = a.in<float>(0), *dy = a.in<float>(1), *addend = a.in<float>(2);
    float* dx = a.out<float>(0);
    ForChunks(n_, [&](int64_t begin, int64_t end) {
      ForLanes(end - begin, [&](auto lanes, int64_t place) {
        const int64_t i = begin + place;
        const __m256 passes = _mm256_cmp_ps(lanes.Load(y + i), _mm256_setzero_ps(), _CMP_GT_OQ);
        const __m256 sum = _mm256_add_ps(lanes.Load(dy + i), lanes.Load(addend + i));
        lanes.Store(dx + i, _mm256_and_ps(passes, sum));
      });
    });
  }

  const int64_t n_;
  const bool has_addend_;
};

// Of two alike.
template <typename Body>
class PairKernel : public ElementwisePrimitive {
 public:
  explicit PairKernel(const NodeSpec& node) : n_(node.outputs[0].shape.elements()) {}
  void Run(const Arguments& a) override {
    ForChunks(n_, [&](int64_t begin, int64_t end) {
      const float *x = a.in<float>(0), *b = a.in<float>(1);
      float* y = a.out<float>(0);
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] = Body()(x[i], b[i]);
    });
  }

 private:
  const int64_t n_;
};

class ScaleKernel : public ElementwisePrimitive {
 public:
  explicit ScaleKernel(const NodeSpec& node)
      : n_(node.outputs[0].shape.elements()),
        factor_(static_cast<float>(node.attributes.Real("factor"))) {}
  void Run(const Arguments& a) override {
    ForChunks(n_, [&](int64_t begin, int64_t end) {
      const float* x = a.in<float>(0);
      float* y = a.out<float>(0);
      const float factor = factor_;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
    });
  }

 private:
  const int64_t n_;
  const float factor_;
};

}  // namespace

std::unique_ptr<Primitive> Add(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<PairKernel<AddBody>>(node) : nullptr;
}

std::unique_ptr<Primitive> Divide(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<PairKernel<DivideBody>>(node) : nullptr;
}

std::unique_ptr<Primitive> Multiply(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<PairKernel<MultiplyBody>>(node) : nullptr;
}

std::unique_ptr<Primitive> Relu(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<ReluKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> ReluGrad(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<ReluGradKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> Scale(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<ScaleKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> Subtract(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<PairKernel<SubtractBody>>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

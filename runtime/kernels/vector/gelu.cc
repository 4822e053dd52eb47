#include "runtime/kernels/vector/gelu.h"

#include "runtime/kernels/vector/elements.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

class GeluKernel : public VectorPrimitive {
 public:
  explicit GeluKernel(const NodeSpec& node) : n_(node.outputs[0].shape.elements()) {}
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }
  void Run(const Arguments& a) override {
    ForElements(n_, [&](auto lanes, int64_t i) {
      lanes.Store(a.out<float>(0) + i, GeluOf(lanes.Load(a.in<float>(0) + i)));
    });
  }

 private:
  const int64_t n_;
};

// (x, dy) -> dx = dy (s + x s (1 - s) 2 u')
class GeluGradKernel : public VectorPrimitive {
 public:
  explicit GeluGradKernel(const NodeSpec& node) : n_(node.outputs[0].shape.elements()) {}
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }
  void Run(const Arguments& a) override {
    ForElements(n_, [&](auto lanes, int64_t i) {
      const __m256 x = lanes.Load(a.in<float>(0) + i), square = _mm256_mul_ps(x, x);
      const __m256 s = GeluGate(x, square), rest = _mm256_fnmadd_ps(s, s, s);
      const __m256 slope = _mm256_fmadd_ps(_mm256_set1_ps(6.0F * kGeluRoot * kGeluCubic), square,
                                           _mm256_set1_ps(2.0F * kGeluRoot));
      const __m256 d = _mm256_fmadd_ps(_mm256_mul_ps(x, rest), slope, s);
      lanes.Store(a.out<float>(0) + i, _mm256_mul_ps(lanes.Load(a.in<float>(1) + i), d));
    });
  }

 private:
  const int64_t n_;
};

}  // namespace

std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<GeluKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<GeluGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

#include "runtime/kernels/vector/activations.h"

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/vector/elements.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/vector/wide_lanes.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr auto kGeluRoot = static_cast<float>(GeluBody::kRoot);
constexpr auto kGeluCubic = static_cast<float>(GeluBody::kCubic);
constexpr auto kRootHalf = static_cast<float>(ExactGeluBody::kRootHalf);
constexpr auto kDensity = static_cast<float>(ExactGeluGradBody::kDensity);

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace eight {

using Floats = __m256;

inline Floats All(float v) {
  return _mm256_set1_ps(v);
}
inline Floats Sum(Floats a, Floats b) {
  return _mm256_add_ps(a, b);
}
inline Floats Difference(Floats a, Floats b) {
  return _mm256_sub_ps(a, b);
}
inline Floats Times(Floats a, Floats b) {
  return _mm256_mul_ps(a, b);
}
inline Floats Quotient(Floats a, Floats b) {
  return _mm256_div_ps(a, b);
}
// a b + c
inline Floats TimesPlus(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
// c - a b
inline Floats MinusTimes(Floats a, Floats b, Floats c) {
  return _mm256_fnmadd_ps(a, b, c);
}
inline Floats Absolute(Floats x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
}
// v, which is not negative unless x is, with the sign of x.
inline Floats WithSignOf(Floats x, Floats v) {
  return _mm256_or_ps(v, _mm256_and_ps(x, _mm256_set1_ps(-0.0F)));
}
// `yes` where a is less than b; `no` elsewhere, and where one of them is no number.
inline Floats WhereLess(Floats a, Floats b, Floats yes, Floats no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

#include "runtime/kernels/vector/activation_formulas.h"

}  // namespace eight

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")

namespace sixteen {

using Floats = __m512;

inline Floats All(float v) {
  return _mm512_set1_ps(v);
}
inline Floats Sum(Floats a, Floats b) {
  return _mm512_add_ps(a, b);
}
inline Floats Difference(Floats a, Floats b) {
  return _mm512_sub_ps(a, b);
}
inline Floats Times(Floats a, Floats b) {
  return _mm512_mul_ps(a, b);
}
inline Floats Quotient(Floats a, Floats b) {
  return _mm512_div_ps(a, b);
}
inline Floats TimesPlus(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Floats MinusTimes(Floats a, Floats b, Floats c) {
  return _mm512_fnmadd_ps(a, b, c);
}
inline __m512i SignBits() {
  return _mm512_castps_si512(All(-0.0F));
}
inline Floats Absolute(Floats x) {
  return _mm512_castsi512_ps(
      _mm512_maskz_andnot_epi32(kAllLanes, SignBits(), _mm512_castps_si512(x)));
}
inline Floats WithSignOf(Floats x, Floats v) {
  const __m512i sign = _mm512_and_epi32(_mm512_castps_si512(x), SignBits());
  return _mm512_castsi512_ps(_mm512_or_epi32(_mm512_castps_si512(v), sign));
}
inline Floats WhereLess(Floats a, Floats b, Floats yes, Floats no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

// The first ones of sixteen floats; memory behind them is not touched.
class Lanes {
 public:
  explicit Lanes(__mmask16 mask) : mask_(mask) {}
  Floats Load(const float* from) const { return _mm512_maskz_loadu_ps(mask_, from); }
  void Store(float* to, Floats values) const { _mm512_mask_storeu_ps(to, mask_, values); }

 private:
  __mmask16 mask_;
};

// Calls body(lanes, i) for each i in [0, n) at which sixteen elements begin.
template <typename Body>
inline void ForLanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kWideLane <= n; i += kWideLane) body(Lanes(kAllLanes), i);
  if (i < n) body(Lanes(static_cast<__mmask16>((1U << (n - i)) - 1)), i);
}

#include "runtime/kernels/vector/activation_formulas.h"

}  // namespace sixteen

#pragma GCC pop_options

// Of both an element is made of those at its place.
class ActivationKernel : public VectorPrimitive {
 public:
  ActivationKernel(Activation activation, const NodeSpec& node)
      : activation_(activation), n_(node.outputs[0].shape.elements()) {}
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }
  void Run(const Arguments& a) override {
    ForChunks(n_, [&](int64_t begin, int64_t count) {
      Activate(activation_, {.columns = count}, a.in<float>(0) + begin, a.out<float>(0) + begin);
    });
  }

 private:
  const Activation activation_;
  const int64_t n_;
};

class ActivationGradKernel : public VectorPrimitive {
 public:
  ActivationGradKernel(Activation activation, const NodeSpec& node)
      : activation_(activation), n_(node.outputs[0].shape.elements()) {}
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }
  void Run(const Arguments& a) override {
    const auto grad = UsesWideTiles() ? sixteen::ActivateGrad : eight::ActivateGrad;
    ForChunks(n_, [&](int64_t begin, int64_t count) {
      grad(activation_, count, a.in<float>(0) + begin, a.in<float>(1) + begin,
           a.out<float>(0) + begin);
    });
  }

 private:
  const Activation activation_;
  const int64_t n_;
};

template <typename Kernel>
std::unique_ptr<Primitive> MakeAlike(Activation activation, const NodeSpec& node) {
  return FitsAlike(node) ? std::make_unique<Kernel>(activation, node) : nullptr;
}

}  // namespace

void Activate(Activation activation, const Matrix& matrix, const float* x, float* y) {
  UsesWideTiles() ? sixteen::Activate(activation, matrix, x, y)
                  : eight::Activate(activation, matrix, x, y);
}

std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node) {
  return MakeAlike<ActivationKernel>(Activation::kExactGelu, node);
}
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node) {
  return MakeAlike<ActivationGradKernel>(Activation::kExactGelu, node);
}
std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return MakeAlike<ActivationKernel>(Activation::kGelu, node);
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return MakeAlike<ActivationGradKernel>(Activation::kGelu, node);
}
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node) {
  return MakeAlike<ActivationKernel>(Activation::kSigmoid, node);
}
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node) {
  return MakeAlike<ActivationGradKernel>(Activation::kSigmoid, node);
}
std::unique_ptr<Primitive> Silu(const NodeSpec& node) {
  return MakeAlike<ActivationKernel>(Activation::kSilu, node);
}
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node) {
  return MakeAlike<ActivationGradKernel>(Activation::kSilu, node);
}
std::unique_ptr<Primitive> Tanh(const NodeSpec& node) {
  return MakeAlike<ActivationKernel>(Activation::kTanh, node);
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node) {
  return MakeAlike<ActivationGradKernel>(Activation::kTanh, node);
}

}  // namespace ringmaster::kernels::vector

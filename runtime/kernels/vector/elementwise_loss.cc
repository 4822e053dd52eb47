// Losses that look at each element alone: binary cross-entropy of each label by itself, and the
// squared error.
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "runtime/kernels/vector/elements.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

inline __m256 ExpOfMinusAbs(__m256 x) {
  return Exp(_mm256_or_ps(x, _mm256_set1_ps(-0.0F)));
}

// log(1 + e) for e in [0, 1], as 2 artanh(s) with s = e / (2 + e), which is at most 1/3: of its
// series 2 (s + s^3 / 3 + s^5 / 5 ...) what follows s^15 is less than 2e-9 of the whole.
inline __m256 LogOfOnePlus(__m256 e) {
  constexpr std::array<float, 8> kTerms = {1.0F / 15, 1.0F / 13, 1.0F / 11, 1.0F / 9,
                                           1.0F / 7,  1.0F / 5,  1.0F / 3,  1.0F};
  const __m256 s = _mm256_div_ps(e, _mm256_add_ps(e, _mm256_set1_ps(2.0F)));
  const __m256 square = _mm256_mul_ps(s, s);
  __m256 sum = _mm256_set1_ps(kTerms[0]);
  for (size_t i = 1; i < kTerms.size(); ++i)
    sum = _mm256_fmadd_ps(sum, square, _mm256_set1_ps(kTerms[i]));
  return _mm256_mul_ps(_mm256_add_ps(s, s), sum);
}

// (logits, labels) -> (sum of losses, number correct).
class BinaryCrossEntropyKernel : public VectorPrimitive {
 public:
  explicit BinaryCrossEntropyKernel(const NodeSpec& node) : n_(node.inputs[0].shape.elements()) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(PartsOf(n_, kChunk)) * sizeof(Outcome);
  }

  void Run(const Arguments& a) override {
    const Outcome all =
        SumOfChunks(n_, static_cast<Outcome*>(a.scratch), [&](int64_t begin, int64_t count) {
          return OutcomeOf(a.in<float>(0) + begin, a.in<int32_t>(1) + begin, count);
        });
    *a.out<float>(0) = static_cast<float>(all.loss);
    *a.out<float>(1) = static_cast<float>(n_ - all.wrong);
  }

 private:
  struct Outcome {
    double loss;
    int64_t wrong;

    Outcome& operator+=(const Outcome& more) {
      loss += more.loss;
      wrong += more.wrong;
      return *this;
    }
  };

  static Outcome OutcomeOf(const float* logits, const int32_t* labels, int64_t count) {
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1.0F);
    const __m256 nan = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
    // Behind the last element: with the label 0, which is loaded there, right and of no loss.
    const __m256 rest = _mm256_set1_ps(-1000.0F);
    Sum loss;
    int64_t wrong = 0;
    ForLanes(count, [&](auto lanes, int64_t i) {
      const __m256 x = lanes.LoadOr(logits + i, rest);
      const __m256i label = lanes.Load(labels + i);
      const __m256 is_one = _mm256_castsi256_ps(_mm256_cmpeq_epi32(label, _mm256_set1_epi32(1)));
      const __m256 is_zero = _mm256_castsi256_ps(_mm256_cmpeq_epi32(label, _mm256_setzero_si256()));
      const __m256 is_label = _mm256_or_ps(is_one, is_zero);
      // log(1 + exp(-x)) for label 1, log(1 + exp(x)) for label 0, without overflow. The order of
      // the operands lets pass what is no number.
      const __m256 aim = _mm256_mul_ps(x, _mm256_and_ps(is_one, one));
      const __m256 each =
          _mm256_add_ps(_mm256_sub_ps(_mm256_max_ps(zero, x), aim), LogOfOnePlus(ExpOfMinusAbs(x)));
      loss.Add(_mm256_blendv_ps(nan, each, is_label));
      const __m256 differs = _mm256_xor_ps(_mm256_cmp_ps(x, zero, _CMP_GT_OQ), is_one);
      const int right = _mm256_movemask_ps(_mm256_andnot_ps(differs, is_label));
      wrong += kLane - std::popcount(static_cast<unsigned>(right));
    });
    return {loss.Total(), wrong};
  }

  const int64_t n_;
};

// (logits, labels, dloss) -> dloss (sigmoid(x) - label).
class BinaryCrossEntropyGradKernel : public VectorPrimitive {
 public:
  explicit BinaryCrossEntropyGradKernel(const NodeSpec& node)
      : n_(node.inputs[0].shape.elements()) {}

  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

  void Run(const Arguments& a) override {
    const __m256 dloss = _mm256_set1_ps(*a.in<float>(2)), one = _mm256_set1_ps(1.0F);
    ForElements(n_, [&](auto lanes, int64_t i) {
      const __m256 x = lanes.Load(a.in<float>(0) + i), e = ExpOfMinusAbs(x);
      // 1 / (1 + e) where x is positive, e / (1 + e) where it is not.
      const __m256 share = _mm256_div_ps(_mm256_blendv_ps(one, e, x), _mm256_add_ps(one, e));
      const __m256 label = _mm256_cvtepi32_ps(lanes.Load(a.in<int32_t>(1) + i));
      lanes.Store(a.out<float>(0) + i, _mm256_mul_ps(dloss, _mm256_sub_ps(share, label)));
    });
  }

 private:
  const int64_t n_;
};

// (x, target) -> sum of (x - target)^2.
class SquaredErrorKernel : public VectorPrimitive {
 public:
  explicit SquaredErrorKernel(const NodeSpec& node) : n_(node.inputs[0].shape.elements()) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(PartsOf(n_, kChunk)) * sizeof(double);
  }

  void Run(const Arguments& a) override {
    const double sum =
        SumOfChunks(n_, static_cast<double*>(a.scratch), [&](int64_t begin, int64_t count) {
          const float *x = a.in<float>(0) + begin, *target = a.in<float>(1) + begin;
          Sum squares;
          ForLanes(count, [&](auto lanes, int64_t i) {
            const __m256 difference = _mm256_sub_ps(lanes.Load(x + i), lanes.Load(target + i));
            squares.AddProduct(difference, difference);
          });
          return squares.Total();
        });
    *a.out<float>(0) = static_cast<float>(sum);
  }

 private:
  const int64_t n_;
};

// (x, target, dloss) -> 2 dloss (x - target).
class SquaredErrorGradKernel : public VectorPrimitive {
 public:
  explicit SquaredErrorGradKernel(const NodeSpec& node) : n_(node.inputs[0].shape.elements()) {}

  bool MayOverwrite(int input, int output) const override { return input <= 1 && output == 0; }

  void Run(const Arguments& a) override {
    const __m256 twice = _mm256_set1_ps(2.0F * *a.in<float>(2));
    ForElements(n_, [&](auto lanes, int64_t i) {
      const __m256 difference =
          _mm256_sub_ps(lanes.Load(a.in<float>(0) + i), lanes.Load(a.in<float>(1) + i));
      lanes.Store(a.out<float>(0) + i, _mm256_mul_ps(twice, difference));
    });
  }

 private:
  const int64_t n_;
};

}  // namespace

std::unique_ptr<Primitive> BinaryCrossEntropy(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<BinaryCrossEntropyKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> BinaryCrossEntropyGrad(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<BinaryCrossEntropyGradKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> SquaredError(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<SquaredErrorKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> SquaredErrorGrad(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<SquaredErrorGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

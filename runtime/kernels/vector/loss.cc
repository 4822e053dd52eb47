// Softmax cross-entropy. Made for tens of thousands of classes: a row of logits stays in the second
// cache from its largest element to its probabilities. Of few classes eight rows are taken at once,
// sixteen with AVX-512, a lane each, to the same bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/vector/wide_lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kFewClasses = 64;

// A row's loss, and whether it was right.
struct Row {
  double loss, correct;
};

// Calls body(first) for eight classes at a time, the last of which may be among those before.
template <typename Body>
void ForEightClasses(int64_t classes, const Body& body) {
  const int64_t last = classes - kLane;
  for (int64_t first = 0; first < last; first += kLane) body(first);
  body(last);
}

#pragma GCC push_options
#pragma GCC target("avx512f,fma")

// The sums of eight rows and their reciprocals, added as Sum adds a row: each eighth class by
// itself, then the fours of them.
inline void TakeSums(const __m512d (&eighths)[kLane], double* sums, float* shares) {
  __m512d both[kLane / 2];
  for (size_t k = 0; k < kLane / 2; ++k)
    both[k] = _mm512_add_pd(eighths[k], eighths[k + kLane / 2]);
  const __m512d sum =
      _mm512_add_pd(_mm512_add_pd(both[0], both[1]), _mm512_add_pd(both[2], both[3]));
  _mm512_store_pd(sums, sum);
  _mm256_store_ps(shares,
                  _mm512_maskz_cvtpd_ps(kAllDoubles, _mm512_div_pd(_mm512_set1_pd(1.0), sum)));
}

// Of kLane to kFewClasses classes, whose targets are the labels alone.
void RunSixteenRows(int64_t classes, const float* logits, const int32_t* labels,
                    float* probabilities, Row* results) {
  alignas(64) std::array<float, static_cast<size_t>(kFewClasses * kWideLane)> columns;
  const auto column = [&](int64_t c) { return columns.data() + c * kWideLane; };
  ForEightClasses(classes, [&](int64_t first) {
    __m512 block[kLane];
    for (int64_t i = 0; i < kLane; ++i) {
      const float* const row = logits + i * classes + first;
      block[i] = LoadHalves(row, row + kLane * classes);
    }
    RowsToColumns(block);
    for (int64_t i = 0; i < kLane; ++i) _mm512_store_ps(column(first + i), block[i]);
  });
  __m512 shift = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (int64_t c = 0; c < classes; ++c)
    shift = _mm512_maskz_max_ps(kAllLanes, _mm512_load_ps(column(c)), shift);
  // The first class of each row that has its largest logit, and the label's logit.
  const __m512i wanted = _mm512_loadu_si512(labels);
  __m512i first_largest = _mm512_set1_epi32(-1);
  __m512 aim = _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN());
  for (int64_t c = classes; c-- > 0;) {
    const __m512 logit = _mm512_load_ps(column(c));
    const __m512i number = _mm512_set1_epi32(static_cast<int32_t>(c));
    first_largest =
        _mm512_mask_mov_epi32(first_largest, _mm512_cmp_ps_mask(logit, shift, _CMP_EQ_OQ), number);
    aim = _mm512_mask_mov_ps(aim, _mm512_cmpeq_epi32_mask(wanted, number), logit);
  }
  const __mmask16 correct = _mm512_mask_cmpge_epi32_mask(
      _mm512_cmpeq_epi32_mask(first_largest, wanted), wanted, _mm512_setzero_si512());
  __m512d low[kLane], high[kLane];
  for (int64_t c = 0; c < classes; ++c) {
    float* const to = column(c);
    _mm512_store_ps(to, Exp(_mm512_sub_ps(_mm512_load_ps(to), shift)));
    const int64_t k = c % kLane;
    low[k] = c < kLane ? LoadDoubles(to) : _mm512_add_pd(low[k], LoadDoubles(to));
    high[k] = c < kLane ? LoadDoubles(to + kLane) : _mm512_add_pd(high[k], LoadDoubles(to + kLane));
  }
  alignas(64) std::array<double, static_cast<size_t>(kWideLane)> sums;
  alignas(64) std::array<float, static_cast<size_t>(kWideLane)> shares, largest, aims;
  TakeSums(low, sums.data(), shares.data());
  TakeSums(high, sums.data() + kLane, shares.data() + kLane);
  const __m512 share = _mm512_load_ps(shares.data());
  ForEightClasses(classes, [&](int64_t first) {
    __m512 block[kLane];
    for (int64_t i = 0; i < kLane; ++i)
      block[i] = _mm512_mul_ps(_mm512_load_ps(column(first + i)), share);
    ColumnsToRows(block);
    for (int64_t i = 0; i < kLane; ++i) {
      float* const row = probabilities + i * classes + first;
      StoreHalves(block[i], row, row + kLane * classes);
    }
  });
  _mm512_store_ps(largest.data(), shift);
  _mm512_store_ps(aims.data(), aim);
  for (size_t i = 0; i < kWideLane; ++i) {
    results[i] = {
        std::log(sums[i]) + static_cast<double>(largest[i]) - static_cast<double>(aims[i]),
        (correct >> i & 1U) != 0 ? 1.0 : 0.0};
  }
}

#pragma GCC pop_options

// (logits, labels) -> (sum of losses, number correct, probabilities).
class LossKernel : public VectorPrimitive {
 public:
  explicit LossKernel(const NodeSpec& node)
      : classes_(node.inputs[0].shape.dim(-1)),
        rows_(node.inputs[1].shape.elements()),
        smoothing_(node.attributes.Real("smoothing")) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(rows_) * sizeof(Row); }

  // The logits by the probabilities, a row at a time.
  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 2; }

  void Run(const Arguments& a) override {
    Row* results = static_cast<Row*>(a.scratch);
    const float* logits = a.in<float>(0);
    const int32_t* labels = a.in<int32_t>(1);
    float* probabilities = a.out<float>(2);
    int64_t done = 0;
    // As many rows at once as there are so many of.
    const auto run = [&](int64_t together, const auto& rows) {
      const int64_t count = (rows_ - done) / together;
      device::ParallelFor(count, together * classes_ * 2, [&](int64_t i) {
        const int64_t r = done + i * together;
        rows(logits + r * classes_, labels + r, probabilities + r * classes_, results + r);
      });
      done += count * together;
    };
    if (classes_ >= kLane && classes_ <= kFewClasses) {
      if (smoothing_ == 0 && UsesWideTiles())
        run(kWideLane, [&](auto... of_rows) { RunSixteenRows(classes_, of_rows...); });
      run(kLane, [&](auto... of_rows) { RunEightRows(of_rows...); });
    }
    run(1, [&](const float* x, const int32_t* label, float* p, Row* result) {
      *result = RunRow(x, *label, p);
    });
    Row total{0, 0};
    for (int64_t r = 0; r < rows_; ++r) {
      total.loss += results[r].loss;
      total.correct += results[r].correct;
    }
    *a.out<float>(0) = static_cast<float>(total.loss);
    *a.out<float>(1) = static_cast<float>(total.correct);
  }

 private:
  Row RunRow(const float* logits, int32_t label, float* probabilities) const {
    const float largest = Largest(logits, classes_);
    const double aim = AimOf(logits, label);
    const bool correct = IsCorrect(largest, logits, label);
    // From here on the logits may be gone.
    const __m256 shift = _mm256_set1_ps(largest);
    const __m256 nothing = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    Sum exponentials;
    ForLanes(classes_, [&](auto lanes, int64_t c) {
      const __m256 e = Exp(_mm256_sub_ps(lanes.LoadOr(logits + c, nothing), shift));
      exponentials.Add(e);
      lanes.Store(probabilities + c, e);
    });
    const double sum = exponentials.Total();
    const __m256 share = _mm256_set1_ps(static_cast<float>(1.0 / sum));
    ForLanes(classes_, [&](auto lanes, int64_t c) {
      lanes.Store(probabilities + c, _mm256_mul_ps(lanes.Load(probabilities + c), share));
    });
    return {std::log(sum) + static_cast<double>(largest) - aim, correct ? 1.0 : 0.0};
  }

  void RunEightRows(const float* logits, const int32_t* labels, float* probabilities,
                    Row* results) const {
    alignas(32) std::array<float, static_cast<size_t>(kFewClasses * kLane)> columns;
    const auto column = [&](int64_t c) { return columns.data() + c * kLane; };
    ForEightClasses(classes_, [&](int64_t first) {
      EightRows block;
      for (int64_t i = 0; i < kLane; ++i) block[i] = _mm256_loadu_ps(logits + i * classes_ + first);
      Transpose(block);
      for (int64_t i = 0; i < kLane; ++i) _mm256_store_ps(column(first + i), block[i]);
    });
    __m256 shift = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (int64_t c = 0; c < classes_; ++c) shift = _mm256_max_ps(_mm256_load_ps(column(c)), shift);
    alignas(32) std::array<float, kLane> largest;
    _mm256_store_ps(largest.data(), shift);
    // The first class of each row that has its largest logit.
    __m256i first_largest = _mm256_set1_epi32(-1);
    for (int64_t c = classes_; c-- > 0;) {
      const __m256 is_largest = _mm256_cmp_ps(_mm256_load_ps(column(c)), shift, _CMP_EQ_OQ);
      first_largest = _mm256_blendv_epi8(first_largest, _mm256_set1_epi32(static_cast<int32_t>(c)),
                                         _mm256_castps_si256(is_largest));
    }
    alignas(32) std::array<int32_t, kLane> guesses;
    _mm256_store_si256(reinterpret_cast<__m256i*>(guesses.data()), first_largest);
    std::array<double, kLane> aims;
    for (size_t i = 0; i < kLane; ++i) {
      aims[i] = AimOf(logits + static_cast<int64_t>(i) * classes_, labels[i]);
      results[i].correct = IsKnown(labels[i]) && guesses[i] == labels[i] ? 1.0 : 0.0;
    }
    // Added as Sum adds a row: each eighth class by itself, then the fours of them.
    alignas(32) std::array<double, static_cast<size_t>(kLane * kLane)> partial;
    for (int64_t c = 0; c < classes_; ++c) {
      const __m256 e = Exp(_mm256_sub_ps(_mm256_load_ps(column(c)), shift));
      _mm256_store_ps(column(c), e);
      double* const to = partial.data() + c % kLane * kLane;
      c < kLane ? SetTo(to, e) : AddTo(to, e);
    }
    std::array<double, kLane> sums;
    alignas(32) std::array<float, kLane> shares;
    for (size_t i = 0; i < kLane; ++i) {
      const auto both = [&](size_t k) {
        return partial[k * kLane + i] + partial[(k + kLane / 2) * kLane + i];
      };
      sums[i] = (both(0) + both(1)) + (both(2) + both(3));
      shares[i] = static_cast<float>(1.0 / sums[i]);
    }
    const __m256 share = _mm256_load_ps(shares.data());
    ForEightClasses(classes_, [&](int64_t first) {
      EightRows block;
      for (int64_t i = 0; i < kLane; ++i)
        block[i] = _mm256_mul_ps(_mm256_load_ps(column(first + i)), share);
      Transpose(block);
      for (int64_t i = 0; i < kLane; ++i)
        _mm256_storeu_ps(probabilities + i * classes_ + first, block[i]);
    });
    for (size_t i = 0; i < kLane; ++i)
      results[i].loss = std::log(sums[i]) + static_cast<double>(largest[i]) - aims[i];
  }

  bool IsKnown(int32_t label) const { return label >= 0 && label < classes_; }
  double AimOf(const float* logits, int32_t label) const {
    return IsKnown(label) ? Aim(logits, label) : std::numeric_limits<double>::quiet_NaN();
  }
  bool IsCorrect(float largest, const float* logits, int32_t label) const {
    return IsKnown(label) && IsFirstOf(largest, logits, label);
  }

  // Whether the label's logit is the first that equals `largest`.
  static bool IsFirstOf(float largest, const float* logits, int32_t label) {
    if (logits[label] != largest) return false;
    for (int32_t c = 0; c < label; ++c) {
      if (logits[c] == largest) return false;
    }
    return true;
  }

  // The sum of the logits, each times its target.
  double Aim(const float* logits, int32_t label) const {
    const double at_label = static_cast<double>(logits[label]);
    if (smoothing_ == 0) return at_label;
    Sum sum;
    ForLanes(classes_, [&](auto lanes, int64_t c) { sum.Add(lanes.Load(logits + c)); });
    return (1.0 - smoothing_) * at_label +
           smoothing_ * (sum.Total() / static_cast<double>(classes_));
  }

  const int64_t classes_, rows_;
  const double smoothing_;
};

// (probabilities, labels, dloss) -> dlogits = dloss (p - target).
class LossGradKernel : public VectorPrimitive {
 public:
  explicit LossGradKernel(const NodeSpec& node)
      : classes_(node.inputs[0].shape.dim(-1)),
        rows_(node.inputs[1].shape.elements()),
        everywhere_(
            static_cast<float>(node.attributes.Real("smoothing") / static_cast<double>(classes_))),
        at_label_(static_cast<float>(1.0 - node.attributes.Real("smoothing")) + everywhere_) {}

  // The probabilities, a row at a time.
  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

  void Run(const Arguments& a) override {
    device::ParallelFor((rows_ + kLane - 1) / kLane, kLane * classes_, [&](int64_t i) {
      const int64_t first = i * kLane;
      RunRows(a.in<float>(0) + first * classes_, a.in<int32_t>(1) + first, *a.in<float>(2),
              std::min(kLane, rows_ - first), a.out<float>(0) + first * classes_);
    });
  }

 private:
  // At most kLane rows, in one loop: of few classes a row alone is hardly a vector.
  void RunRows(const float* p, const int32_t* labels, float dloss, int64_t rows,
               float* dlogits) const {
    const auto is_known = [&](int64_t r) { return labels[r] >= 0 && labels[r] < classes_; };
    const float everywhere = everywhere_;
    // Before the probabilities may be gone.
    std::array<float, kLane> of_labels;
    for (int64_t r = 0; r < rows; ++r) {
      of_labels[static_cast<size_t>(r)] =
          is_known(r) ? dloss * (p[r * classes_ + labels[r]] - at_label_) : 0.0F;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < rows * classes_; ++i) dlogits[i] = dloss * (p[i] - everywhere);
    for (int64_t r = 0; r < rows; ++r) {
      if (is_known(r)) dlogits[r * classes_ + labels[r]] = of_labels[static_cast<size_t>(r)];
    }
  }

  const int64_t classes_, rows_;
  const float everywhere_, at_label_;  // the target
};

}  // namespace

std::unique_ptr<Primitive> SoftmaxCrossEntropy(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<LossKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> SoftmaxCrossEntropyGrad(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<LossGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

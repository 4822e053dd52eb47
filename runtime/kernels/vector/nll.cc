// The negative log-likelihood. The sum is made row by row, as in the reference kernel, and has its
// bits; what takes time is to see whether a label has the row's largest element.
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Whether any of n floats stands in that relation (_CMP_...) to `bound`.
template <int kRelation>
bool AnyOf(const float* x, int64_t n, float bound) {
  const __m256 bounds = _mm256_set1_ps(bound);
  const auto stands = [&](__m256 values) {
    return _mm256_movemask_ps(_mm256_cmp_ps(values, bounds, kRelation)) != 0;
  };
  int64_t i = 0;
  for (; i + kLane <= n; i += kLane) {
    if (stands(_mm256_loadu_ps(x + i))) return true;
  }
  const __m256 none = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
  return i < n && stands(Part(n - i).LoadOr(x + i, none));
}

// (log-probabilities, labels) -> (minus their sum at the labels, number of labels with the
// largest).
class NllKernel : public VectorPrimitive {
 public:
  explicit NllKernel(const NodeSpec& node)
      : classes_(node.inputs[0].shape.dim(-1)), rows_(node.inputs[1].shape.elements()) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(rows_) * sizeof(bool); }

  void Run(const Arguments& a) override {
    const float* scores = a.in<float>(0);
    const int32_t* labels = a.in<int32_t>(1);
    bool* correct = static_cast<bool*>(a.scratch);
    const auto is_known = [&](int64_t r) { return labels[r] >= 0 && labels[r] < classes_; };
    device::ParallelFor(rows_, classes_ / 4 + 1, [&](int64_t r) {
      correct[r] = is_known(r) && IsFirstLargest(scores + r * classes_, labels[r]);
    });
    double loss = 0, count = 0;
    for (int64_t r = 0; r < rows_; ++r) {
      loss -= is_known(r) ? static_cast<double>(scores[r * classes_ + labels[r]])
                          : std::numeric_limits<double>::quiet_NaN();
      count += correct[r] ? 1.0 : 0.0;
    }
    *a.out<float>(0) = static_cast<float>(loss);
    *a.out<float>(1) = static_cast<float>(count);
  }

 private:
  // Whether it is what std::max_element finds. That takes a first element that is no number, and
  // passes over others.
  bool IsFirstLargest(const float* scores, int32_t label) const {
    const float score = scores[label];
    const bool none = score != score || scores[0] != scores[0];
    if (none) return label == 0;
    return !AnyOf<_CMP_GE_OQ>(scores, label, score) &&
           !AnyOf<_CMP_GT_OQ>(scores + label + 1, classes_ - label - 1, score);
  }

  const int64_t classes_, rows_;
};

}  // namespace

std::unique_ptr<Primitive> Nll(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<NllKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector

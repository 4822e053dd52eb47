#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// (logits, labels) -> (sum of losses, number correct, probabilities).
template <typename T>
class LossKernel : public ReferencePrimitive {
 public:
  explicit LossKernel(const NodeSpec& node)
      : classes_(InShape(node, 0).dim(-1)),
        rows_(InShape(node, 1).elements()),
        smoothing_(node.attributes.Real("smoothing")) {}

  // Each row's loss, and whether it was right.
  size_t scratch_bytes() const override { return static_cast<size_t>(rows_) * sizeof(Row); }

  void Run(const Arguments& a) override {
    Row* results = static_cast<Row*>(a.scratch);
    ParallelFor(rows_, classes_ * 8, [&](int64_t r) {
      results[r] =
          RunRow(a.in<T>(0) + r * classes_, a.in<int32_t>(1)[r], a.out<T>(2) + r * classes_);
    });
    Row total{0, 0};
    for (int64_t r = 0; r < rows_; ++r) {
      total.loss += results[r].loss;
      total.correct += results[r].correct;
    }
    *a.out<T>(0) = static_cast<T>(total.loss);
    *a.out<T>(1) = static_cast<T>(total.correct);
  }

 private:
  struct Row {
    double loss, correct;
  };

  Row RunRow(const T* logits, int32_t label, T* probabilities) const {
    const T* largest = std::max_element(logits, logits + classes_);
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      probabilities[c] = std::exp(logits[c] - *largest);
      sum += static_cast<double>(probabilities[c]);
    }
    const T share = static_cast<T>(1.0 / sum);
    for (int64_t c = 0; c < classes_; ++c) probabilities[c] *= share;
    if (label < 0 || label >= classes_) return {std::numeric_limits<double>::quiet_NaN(), 0};
    const double loss = std::log(sum) + static_cast<double>(*largest) - Aim(logits, label);
    return {loss, largest - logits == label ? 1.0 : 0.0};
  }

  // The sum of the logits, each times its target.
  double Aim(const T* logits, int32_t label) const {
    const double at_label = static_cast<double>(logits[label]);
    if (smoothing_ == 0) return at_label;
    const double mean =
        SumOver(classes_, [&](int64_t c) { return logits[c]; }) / static_cast<double>(classes_);
    return (1.0 - smoothing_) * at_label + smoothing_ * mean;
  }

  int64_t classes_, rows_;
  double smoothing_;
};

// (probabilities, labels, dloss) -> dlogits = dloss (p - target).
template <typename T>
class LossGradKernel : public ReferencePrimitive {
 public:
  explicit LossGradKernel(const NodeSpec& node)
      : classes_(InShape(node, 0).dim(-1)), rows_(InShape(node, 1).elements()) {
    const double smoothing = node.attributes.Real("smoothing");
    everywhere_ = static_cast<T>(smoothing / static_cast<double>(classes_));
    at_label_ = static_cast<T>(1.0 - smoothing) + everywhere_;
  }

  void Run(const Arguments& a) override {
    const T dloss = *a.in<T>(2);
    ParallelFor(rows_, classes_, [&](int64_t r) {
      const T* p = a.in<T>(0) + r * classes_;
      T* dlogits = a.out<T>(0) + r * classes_;
      const int32_t label = a.in<int32_t>(1)[r];
      for (int64_t c = 0; c < classes_; ++c)
        dlogits[c] = dloss * (p[c] - (c == label ? at_label_ : everywhere_));
    });
  }

 private:
  int64_t classes_, rows_;
  T everywhere_, at_label_;  // the target
};

}  // namespace

std::unique_ptr<Primitive> SoftmaxCrossEntropy(const NodeSpec& node) {
  return MakeReal<LossKernel>(node);
}
std::unique_ptr<Primitive> SoftmaxCrossEntropyGrad(const NodeSpec& node) {
  return MakeReal<LossGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

#include <algorithm>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// (log-probabilities, labels) -> (minus their sum at the labels, number of labels with the
// largest).
template <typename T>
class NllKernel : public ReferencePrimitive {
 public:
  explicit NllKernel(const NodeSpec& node)
      : classes_(InShape(node, 0).dim(-1)), rows_(InShape(node, 1).elements()) {}

  void Run(const Arguments& a) override {
    double loss = 0, correct = 0;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* scores = a.in<T>(0) + r * classes_;
      const int32_t label = a.in<int32_t>(1)[r];
      if (label < 0 || label >= classes_) {
        loss = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      loss -= static_cast<double>(scores[label]);
      if (std::max_element(scores, scores + classes_) - scores == label) correct += 1;
    }
    *a.out<T>(0) = static_cast<T>(loss);
    *a.out<T>(1) = static_cast<T>(correct);
  }

 private:
  int64_t classes_, rows_;
};

// (dloss, labels) -> -dloss at the labels.
template <typename T>
class NllGradKernel : public ReferencePrimitive {
 public:
  explicit NllGradKernel(const NodeSpec& node)
      : classes_(OutShape(node, 0).dim(-1)), rows_(InShape(node, 1).elements()) {}

  void Run(const Arguments& a) override {
    const T dloss = *a.in<T>(0);
    ParallelFor(rows_, classes_, [&](int64_t r) {
      T* to = a.out<T>(0) + r * classes_;
      std::fill_n(to, classes_, T(0));
      const int32_t label = a.in<int32_t>(1)[r];
      if (label >= 0 && label < classes_) to[label] = -dloss;
    });
  }

 private:
  int64_t classes_, rows_;
};

// Labels -> rows that are 1 at the label and 0 elsewhere.
template <typename T>
class OneHotKernel : public ReferencePrimitive {
 public:
  explicit OneHotKernel(const NodeSpec& node)
      : classes_(OutShape(node, 0).dim(-1)), rows_(InShape(node, 0).elements()) {}

  void Run(const Arguments& a) override {
    ParallelFor(rows_, classes_, [&](int64_t r) {
      T* to = a.out<T>(0) + r * classes_;
      const int32_t label = a.in<int32_t>(0)[r];
      if (label < 0 || label >= classes_) {
        std::fill_n(to, classes_, std::numeric_limits<T>::quiet_NaN());
        return;
      }
      std::fill_n(to, classes_, T(0));
      to[label] = T(1);
    });
  }

 private:
  int64_t classes_, rows_;
};

}  // namespace

std::unique_ptr<Primitive> Nll(const NodeSpec& node) {
  return MakeReal<NllKernel>(node);
}
std::unique_ptr<Primitive> NllGrad(const NodeSpec& node) {
  return MakeReal<NllGradKernel>(node);
}
std::unique_ptr<Primitive> OneHot(const NodeSpec& node) {
  return MakeReal<OneHotKernel>(node);
}

}  // namespace ringmaster::kernels::reference

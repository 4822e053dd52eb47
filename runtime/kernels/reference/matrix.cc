#include "runtime/kernels/activation.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

struct Strides {
  int64_t row, column;
};

template <typename T>
T Activated(Activation activation, T x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return ReluBody()(x);
    case Activation::kGelu:
      return GeluBody()(x);
    case Activation::kExactGelu:
      return ExactGeluBody()(x);
    case Activation::kSigmoid:
      return SigmoidBody()(x);
    case Activation::kSilu:
      return SiluBody()(x);
    case Activation::kTanh:
      return TanhBody()(x);
  }
  return x;
}

// The product of an m x k and a k x n matrix, each given by strides, plus a row that may be null.
template <typename T>
struct Product {
  int64_t m, k, n;
  Strides a, b;

  void Run(const T* x, const T* w, const T* bias, T* y) const {
    ParallelFor(m, k * n, [&](int64_t i) {
      for (int64_t j = 0; j < n; ++j) {
        const T *from_x = x + i * a.row, *from_w = w + j * b.column;
        double sum = bias != nullptr ? static_cast<double>(bias[j]) : 0.0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(from_x[p * a.column]) * static_cast<double>(from_w[p * b.row]);
        }
        y[i * n + j] = static_cast<T>(sum);
      }
    });
  }
};

int64_t Rows(const Shape& shape) {
  return shape.Product(0, shape.rank() - 1);
}

template <typename T>
class MatMulKernel : public ReferencePrimitive {
 public:
  explicit MatMulKernel(const NodeSpec& node) {
    const Shape &a = InShape(node, 0), &b = InShape(node, 1);
    const bool ta = node.attributes.Int("transpose_a") != 0,
               tb = node.attributes.Int("transpose_b") != 0;
    product_.m = ta ? a.dim(-1) : Rows(a);
    product_.k = ta ? Rows(a) : a.dim(-1);
    product_.n = tb ? Rows(b) : b.dim(-1);
    product_.a = ta ? Strides{1, a.dim(-1)} : Strides{a.dim(-1), 1};
    product_.b = tb ? Strides{1, b.dim(-1)} : Strides{b.dim(-1), 1};
  }
  void Run(const Arguments& a) override {
    product_.Run(a.in<T>(0), a.in<T>(1), nullptr, a.out<T>(0));
  }

 private:
  Product<T> product_;
};

template <typename T>
class BatchMatMulKernel : public ReferencePrimitive {
 public:
  explicit BatchMatMulKernel(const NodeSpec& node)
      : batch_(OutShape(node, 0).Product(0, OutShape(node, 0).rank() - 2)) {
    const Shape &a = InShape(node, 0), &b = InShape(node, 1), &c = OutShape(node, 0);
    const bool ta = node.attributes.Int("transpose_a") != 0,
               tb = node.attributes.Int("transpose_b") != 0;
    product_.m = c.dim(-2);
    product_.k = ta ? a.dim(-2) : a.dim(-1);
    product_.n = c.dim(-1);
    product_.a = ta ? Strides{1, a.dim(-1)} : Strides{a.dim(-1), 1};
    product_.b = tb ? Strides{1, b.dim(-1)} : Strides{b.dim(-1), 1};
  }

  void Run(const Arguments& a) override {
    const int64_t m = product_.m, k = product_.k, n = product_.n;
    for (int64_t i = 0; i < batch_; ++i) {
      product_.Run(a.in<T>(0) + i * m * k, a.in<T>(1) + i * k * n, nullptr,
                   a.out<T>(0) + i * m * n);
    }
  }

 private:
  int64_t batch_;
  Product<T> product_;
};

// The layer's result is output kResult of the node; its activation, if it has one, is output 0, and
// takes the result's place where the two are one.
template <typename T, size_t kResult>
class LinearResultKernel : public ReferencePrimitive {
 public:
  explicit LinearResultKernel(const NodeSpec& node)
      : has_bias_(node.inputs.size() == 3), activation_(ActivationIn(node.attributes)) {
    const Shape &x = InShape(node, 0), &weight = InShape(node, 1);
    product_ = {
        .m = Rows(x), .k = x.dim(-1), .n = weight.dim(0), .a = {x.dim(-1), 1}, .b = {1, x.dim(-1)}};
  }
  void Run(const Arguments& a) override {
    T *result = a.out<T>(kResult), *y = a.out<T>(0);
    product_.Run(a.in<T>(0), a.in<T>(1), has_bias_ ? a.in<T>(2) : nullptr, result);
    if (activation_ == Activation::kNone) return;
    ParallelFor(product_.m * product_.n, 1,
                [&](int64_t i) { y[i] = Activated(activation_, result[i]); });
  }

 private:
  Product<T> product_;
  bool has_bias_;
  Activation activation_;
};

template <typename T>
using LinearKernel = LinearResultKernel<T, 0>;
template <typename T>
using LinearActivationKernel = LinearResultKernel<T, 1>;

}  // namespace

std::unique_ptr<Primitive> BatchMatMul(const NodeSpec& node) {
  return MakeReal<BatchMatMulKernel>(node);
}
std::unique_ptr<Primitive> MatMul(const NodeSpec& node) {
  return MakeReal<MatMulKernel>(node);
}
std::unique_ptr<Primitive> Linear(const NodeSpec& node) {
  return MakeReal<LinearKernel>(node);
}
std::unique_ptr<Primitive> LinearActivation(const NodeSpec& node) {
  return MakeReal<LinearActivationKernel>(node);
}

}  // namespace ringmaster::kernels::reference

#include "runtime/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::reference {
namespace {

// Elements that one parallel task takes.
constexpr int64_t kChunk = 4096;

template <typename Body>
void ForElements(int64_t n, const Body& body) {
  ParallelFor((n + kChunk - 1) / kChunk, kChunk, [&](int64_t chunk) {
    const int64_t end = std::min(n, (chunk + 1) * kChunk);
    for (int64_t i = chunk * kChunk; i < end; ++i) body(i);
  });
}

template <typename T, typename Body>
class UnaryKernel : public ReferencePrimitive {
 public:
  explicit UnaryKernel(const NodeSpec& node) : n_(OutShape(node, 0).elements()) {}
  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T* y = a.out<T>(0);
    ForElements(n_, [&](int64_t i) { y[i] = Body()(x[i]); });
  }

 private:
  int64_t n_;
};

template <typename T, typename Body>
class BinaryKernel : public ReferencePrimitive {
 public:
  explicit BinaryKernel(const NodeSpec& node) : n_(OutShape(node, 0).elements()) {}
  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *dy = a.in<T>(1);
    T* dx = a.out<T>(0);
    ForElements(n_, [&](int64_t i) { dx[i] = Body()(x[i], dy[i]); });
  }

 private:
  int64_t n_;
};

template <typename T>
using ReluKernel = UnaryKernel<T, ReluBody>;
template <typename T>
using ReluGradKernel = BinaryKernel<T, ReluGradBody>;
template <typename T>
using TanhKernel = UnaryKernel<T, TanhBody>;
template <typename T>
using TanhGradKernel = BinaryKernel<T, TanhGradBody>;
template <typename T>
using GeluKernel = UnaryKernel<T, GeluBody>;
template <typename T>
using GeluGradKernel = BinaryKernel<T, GeluGradBody>;

template <typename T>
class ScaleKernel : public ReferencePrimitive {
 public:
  explicit ScaleKernel(const NodeSpec& node)
      : n_(OutShape(node, 0).elements()), factor_(static_cast<T>(node.attributes.Real("factor"))) {}
  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T* y = a.out<T>(0);
    ForElements(n_, [&](int64_t i) { y[i] = factor_ * x[i]; });
  }

 private:
  int64_t n_;
  T factor_;
};

template <typename T>
class ConstantKernel : public ReferencePrimitive {
 public:
  explicit ConstantKernel(const NodeSpec& node)
      : n_(OutShape(node, 0).elements()), value_(static_cast<T>(node.attributes.Real("value"))) {}
  void Run(const Arguments& a) override { std::fill_n(a.out<T>(0), n_, value_); }

 private:
  int64_t n_;
  T value_;
};

class CopyKernel : public ReferencePrimitive {
 public:
  explicit CopyKernel(const NodeSpec& node) : bytes_(node.outputs[0].bytes()) {}
  void Run(const Arguments& a) override { std::memcpy(a.outputs[0], a.inputs[0], bytes_); }

 private:
  size_t bytes_;
};

// a + b with b broadcast: b's strides are 0 on the axes that it lacks.
template <typename T>
class AddKernel : public ReferencePrimitive {
 public:
  explicit AddKernel(const NodeSpec& node) : shape_(OutShape(node, 0)) {
    const Shape& b = InShape(node, 1);
    same_ = b == shape_;
    row_ = shape_.rank() == 0 ? 1 : shape_.dim(-1);
    int64_t stride = 1;
    for (int axis = 1; axis <= b.rank(); ++axis) {
      const auto at = static_cast<size_t>(shape_.rank() - axis);
      if (b.dim(-axis) != 1) strides_[at] = stride;
      stride *= b.dim(-axis);
    }
  }

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *b = a.in<T>(1);
    T* y = a.out<T>(0);
    if (same_) {
      ForElements(shape_.elements(), [&](int64_t i) { y[i] = x[i] + b[i]; });
      return;
    }
    const int64_t step = shape_.rank() == 0 ? 0 : strides_[static_cast<size_t>(shape_.rank() - 1)];
    ParallelFor(shape_.elements() / row_, row_, [&](int64_t r) {
      const T* from = b + RowOffset(r);
      for (int64_t i = 0; i < row_; ++i) y[r * row_ + i] = x[r * row_ + i] + from[i * step];
    });
  }

 private:
  // Where in b the r-th row of the result starts.
  int64_t RowOffset(int64_t r) const {
    int64_t offset = 0;
    for (int axis = shape_.rank() - 2; axis >= 0; --axis) {
      offset += r % shape_.dim(axis) * strides_[static_cast<size_t>(axis)];
      r /= shape_.dim(axis);
    }
    return offset;
  }

  Shape shape_;
  bool same_ = false;
  int64_t row_ = 1;
  std::array<int64_t, Shape::kMaxRank> strides_{};
};

// The mask is a function of the element's place in its sample and of the sample's place in the
// stream.
template <typename T>
class DropoutKernel : public ReferencePrimitive {
 public:
  explicit DropoutKernel(const NodeSpec& node)
      : samples_(OutShape(node, 0).dim(0)),
        per_sample_(OutShape(node, 0).elements() / samples_),
        op_(static_cast<uint32_t>(node.attributes.Int("random_op"))) {
    const double rate = node.attributes.Real("rate");
    threshold_ = static_cast<uint32_t>(rate * 0x1p32);
    scale_ = static_cast<T>(1.0 / (1.0 - rate));
  }

  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T* y = a.out<T>(0);
    ParallelFor(samples_, per_sample_ * 8, [&](int64_t s) {
      const tensor::RandomKey key{.seed = a.context->seed,
                                  .domain = tensor::RandomDomain::kDropout,
                                  .op = op_,
                                  .position = a.context->sample_positions[static_cast<size_t>(s)]};
      MaskSample(key, x + s * per_sample_, y + s * per_sample_);
    });
  }

 private:
  void MaskSample(const tensor::RandomKey& key, const T* x, T* y) const {
    for (int64_t i = 0; i < per_sample_; i += 4) {
      const auto bits = tensor::RandomBlock(key, static_cast<uint32_t>(i / 4));
      const int64_t count = std::min<int64_t>(4, per_sample_ - i);
      for (int64_t j = 0; j < count; ++j) {
        y[i + j] = bits[static_cast<size_t>(j)] >= threshold_ ? scale_ * x[i + j] : T(0);
      }
    }
  }

  int64_t samples_, per_sample_;
  uint32_t op_, threshold_;
  T scale_;
};

}  // namespace

std::unique_ptr<Primitive> Add(const NodeSpec& node) {
  return MakeReal<AddKernel>(node);
}
std::unique_ptr<Primitive> Constant(const NodeSpec& node) {
  return MakeReal<ConstantKernel>(node);
}
std::unique_ptr<Primitive> Copy(const NodeSpec& node) {
  return std::make_unique<CopyKernel>(node);
}
std::unique_ptr<Primitive> Dropout(const NodeSpec& node) {
  return MakeReal<DropoutKernel>(node);
}
std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return MakeReal<GeluKernel>(node);
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return MakeReal<GeluGradKernel>(node);
}
std::unique_ptr<Primitive> Relu(const NodeSpec& node) {
  return MakeReal<ReluKernel>(node);
}
std::unique_ptr<Primitive> ReluGrad(const NodeSpec& node) {
  return MakeReal<ReluGradKernel>(node);
}
std::unique_ptr<Primitive> Scale(const NodeSpec& node) {
  return MakeReal<ScaleKernel>(node);
}
std::unique_ptr<Primitive> Tanh(const NodeSpec& node) {
  return MakeReal<TanhKernel>(node);
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node) {
  return MakeReal<TanhGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

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
// (y, dy) or (y, dy, dy2), whose sum is the gradient.
template <typename T>
class ReluGradKernel : public ReferencePrimitive {
 public:
  explicit ReluGradKernel(const NodeSpec& node)
      : n_(OutShape(node, 0).elements()), has_addend_(node.inputs.size() == 3) {}
  void Run(const Arguments& a) override {
    const T *y = a.in<T>(0), *dy = a.in<T>(1), *addend = has_addend_ ? a.in<T>(2) : nullptr;
    T* dx = a.out<T>(0);
    ForElements(n_, [&](int64_t i) {
      dx[i] = ReluGradBody()(y[i], addend != nullptr ? dy[i] + addend[i] : dy[i]);
    });
  }

 private:
  int64_t n_;
  bool has_addend_;
};
template <typename T>
using SigmoidKernel = UnaryKernel<T, SigmoidBody>;
template <typename T>
using SigmoidGradKernel = BinaryKernel<T, SigmoidGradBody>;
template <typename T>
using SiluKernel = UnaryKernel<T, SiluBody>;
template <typename T>
using SiluGradKernel = BinaryKernel<T, SiluGradBody>;
template <typename T>
using TanhKernel = UnaryKernel<T, TanhBody>;
template <typename T>
using TanhGradKernel = BinaryKernel<T, TanhGradBody>;
template <typename T>
using GeluKernel = UnaryKernel<T, GeluBody>;
template <typename T>
using GeluGradKernel = BinaryKernel<T, GeluGradBody>;

template <typename T>
using ExactGeluKernel = UnaryKernel<T, ExactGeluBody>;
template <typename T>
using ExactGeluGradKernel = BinaryKernel<T, ExactGeluGradBody>;

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

// From one order in memory to another, through the place of each element in rows.
class ReorderKernel : public ReferencePrimitive {
 public:
  explicit ReorderKernel(const NodeSpec& node)
      : shape_(OutShape(node, 0)),
        from_(node.inputs[0].layout),
        to_(node.outputs[0].layout),
        element_(SizeOf(node.outputs[0].dtype)) {}

  void Run(const Arguments& a) override {
    const auto planes = shape_.Product(0, 2), plane = shape_.Product(2, 4);
    ParallelFor(planes, plane, [&](int64_t p) {
      for (int64_t i = 0; i < plane; ++i) {
        std::memcpy(a.out<char>(0) + Place(to_, p, i) * static_cast<int64_t>(element_),
                    a.in<char>(0) + Place(from_, p, i) * static_cast<int64_t>(element_), element_);
      }
    });
  }

 private:
  // Where the i-th element of the p-th plane (of a sample and a channel) lies.
  int64_t Place(tensor::Layout layout, int64_t p, int64_t i) const {
    const int64_t plane = shape_.Product(2, 4);
    if (layout == tensor::Layout::kRowMajor) return p * plane + i;
    const auto block = static_cast<int64_t>(layout);  // samples hold whole blocks
    return (p / block * plane + i) * block + p % block;
  }

  Shape shape_;
  tensor::Layout from_, to_;
  size_t element_;
};

class CopyKernel : public ReferencePrimitive {
 public:
  explicit CopyKernel(const NodeSpec& node) : bytes_(node.outputs[0].bytes()) {}
  void Run(const Arguments& a) override {
    constexpr size_t kPiece = size_t{1} << 15;
    ParallelFor(static_cast<int64_t>((bytes_ + kPiece - 1) / kPiece), kPiece / 4, [&](int64_t i) {
      const size_t begin = static_cast<size_t>(i) * kPiece;
      std::memcpy(a.out<char>(0) + begin, a.in<char>(0) + begin, std::min(kPiece, bytes_ - begin));
    });
  }

 private:
  size_t bytes_;
};

// Of a and b with b broadcast: b's strides are 0 on the axes that it lacks.
template <typename T, typename Body>
class BroadcastKernel : public ReferencePrimitive {
 public:
  explicit BroadcastKernel(const NodeSpec& node) : shape_(OutShape(node, 0)) {
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
      ForElements(shape_.elements(), [&](int64_t i) { y[i] = Body()(x[i], b[i]); });
      return;
    }
    const int64_t step = shape_.rank() == 0 ? 0 : strides_[static_cast<size_t>(shape_.rank() - 1)];
    ParallelFor(shape_.elements() / row_, row_, [&](int64_t r) {
      const T* from = b + RowOffset(shape_, strides_, r);
      for (int64_t i = 0; i < row_; ++i) y[r * row_ + i] = Body()(x[r * row_ + i], from[i * step]);
    });
  }

 private:
  Shape shape_;
  bool same_ = false;
  int64_t row_ = 1;
  std::array<int64_t, Shape::kMaxRank> strides_{};
};

template <typename T>
using AddKernel = BroadcastKernel<T, AddBody>;
template <typename T>
using SubtractKernel = BroadcastKernel<T, SubtractBody>;
template <typename T>
using MultiplyKernel = BroadcastKernel<T, MultiplyBody>;
template <typename T>
using DivideKernel = BroadcastKernel<T, DivideBody>;

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
std::unique_ptr<Primitive> Divide(const NodeSpec& node) {
  return MakeReal<DivideKernel>(node);
}
std::unique_ptr<Primitive> Dropout(const NodeSpec& node) {
  return MakeReal<DropoutKernel>(node);
}
std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node) {
  return MakeReal<ExactGeluKernel>(node);
}
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node) {
  return MakeReal<ExactGeluGradKernel>(node);
}
std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return MakeReal<GeluKernel>(node);
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return MakeReal<GeluGradKernel>(node);
}
std::unique_ptr<Primitive> Multiply(const NodeSpec& node) {
  return MakeReal<MultiplyKernel>(node);
}
std::unique_ptr<Primitive> Relu(const NodeSpec& node) {
  return MakeReal<ReluKernel>(node);
}
std::unique_ptr<Primitive> ReluGrad(const NodeSpec& node) {
  return MakeReal<ReluGradKernel>(node);
}
std::unique_ptr<Primitive> Reorder(const NodeSpec& node) {
  return std::make_unique<ReorderKernel>(node);
}
std::unique_ptr<Primitive> Scale(const NodeSpec& node) {
  return MakeReal<ScaleKernel>(node);
}
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node) {
  return MakeReal<SigmoidKernel>(node);
}
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node) {
  return MakeReal<SigmoidGradKernel>(node);
}
std::unique_ptr<Primitive> Subtract(const NodeSpec& node) {
  return MakeReal<SubtractKernel>(node);
}
std::unique_ptr<Primitive> Silu(const NodeSpec& node) {
  return MakeReal<SiluKernel>(node);
}
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node) {
  return MakeReal<SiluGradKernel>(node);
}
std::unique_ptr<Primitive> Tanh(const NodeSpec& node) {
  return MakeReal<TanhKernel>(node);
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node) {
  return MakeReal<TanhGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference

#include <utility>

#include "runtime/kernels/vector/blocked_product.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/split_product.h"
#include "runtime/kernels/vector/vector.h"

namespace ringmaster::kernels::vector {
namespace {

// Multiplications up to which a product is made in registers: beyond, blocking for caches wins, as
// on a matrix unit, as in oneDNN with AVX-512, or as ours without it.
constexpr int64_t kMostWork = int64_t{1} << 22;

int64_t Rows(const tensor::Shape& shape) {
  return shape.Product(0, shape.rank() - 1);
}

// A linear layer's result is output `result` of the node; its activation, if it has one, is output
// 0, and takes the result's place where the two are one.
class MatrixKernel : public VectorPrimitive {
 public:
  MatrixKernel(const Product& product, bool has_bias, Activation activation = Activation::kNone,
               size_t result = 0)
      : product_(product), has_bias_(has_bias), activation_(activation), result_(result) {}

  size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  void Run(const Arguments& a) override {
    product_.Run(a.in<float>(0), a.in<float>(1), has_bias_ ? a.in<float>(2) : nullptr,
                 a.out<float>(result_), static_cast<float*>(a.scratch),
                 {activation_, a.out<float>(0)});
  }

 private:
  const Product product_;
  const bool has_bias_;
  const Activation activation_;
  const size_t result_;
};

// A product that outgrows the caches.
class BlockedKernel : public VectorPrimitive {
 public:
  BlockedKernel(const Product& product, bool has_bias) : product_(product), has_bias_(has_bias) {}

  size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  void Run(const Arguments& a) override {
    product_.Run(a.in<float>(0), a.in<float>(1), has_bias_ ? a.in<float>(2) : nullptr,
                 a.out<float>(0), static_cast<float*>(a.scratch));
  }

 private:
  const BlockedProduct product_;
  const bool has_bias_;
};

// A linear layer with an activation of a product whose kernel gives nothing away before its end, or
// not to all threads.
class LinearThenActivation : public Primitive {
 public:
  LinearThenActivation(std::unique_ptr<Primitive> linear, std::unique_ptr<Primitive> activation,
                       size_t result)
      : linear_(std::move(linear)), activation_(std::move(activation)), result_(result) {}

  size_t scratch_bytes() const override { return linear_->scratch_bytes(); }
  std::string name() const override { return linear_->name() + "+" + activation_->name(); }
  void Run(const Arguments& a) override {
    linear_->Run({a.inputs, a.outputs + result_, a.scratch, a.context});
    const void* const made[] = {a.outputs[result_]};
    activation_->Run({made, a.outputs, nullptr, a.context});
  }

 private:
  const std::unique_ptr<Primitive> linear_, activation_;
  const size_t result_;
};

bool IsSmall(const Product& product) {
  return product.m * product.n <= kMostWork / product.k;
}

std::unique_ptr<Primitive> Make(const NodeSpec& node, const Product& product, bool has_bias) {
  if (!Fits(node)) return nullptr;
  if (IsSmall(product)) return std::make_unique<MatrixKernel>(product, has_bias);
  if (!UsesWideTiles()) return std::make_unique<BlockedKernel>(product, has_bias);
  const SplitProduct split{.m = product.m,
                           .k = product.k,
                           .n = product.n,
                           .a_rows = {product.a.row},
                           .a_inner = {product.a.column},
                           .b_inner = {product.b.row},
                           .b_columns = {product.b.column},
                           .c_rows = {product.n},
                           .c_columns = {1},
                           .relu = product.relu};
  if (!SplitProduct::Runs() || !split.Pays()) return nullptr;
  return std::make_unique<SplitKernel>(split, 0, 1, has_bias);
}

// A matrix as it lies in memory.
struct Extent {
  int64_t rows, columns;
};

// As a node's attributes say which of the two is transposed.
Product ProductOf(const Attributes& attributes, Extent a, Extent b) {
  const bool ta = attributes.Int("transpose_a") != 0, tb = attributes.Int("transpose_b") != 0;
  return {.m = ta ? a.columns : a.rows,
          .k = ta ? a.rows : a.columns,
          .n = tb ? b.rows : b.columns,
          .a = ta ? Strides{1, a.columns} : Strides{a.columns, 1},
          .b = tb ? Strides{1, b.columns} : Strides{b.columns, 1}};
}

// Products of so many pairs of matrices, which lie one behind the other: threads share small ones,
// and make each of the others together.
class MatricesKernel : public VectorPrimitive {
 public:
  MatricesKernel(const Product& product, int64_t matrices)
      : product_(product), blocked_(product), matrices_(matrices) {}

  size_t scratch_bytes() const override {
    const auto threads = static_cast<size_t>(device::ThreadCount());
    return IsSmall(product_) ? threads * product_.scratch_bytes() : blocked_.scratch_bytes();
  }

  void Run(const Arguments& a) override {
    auto* const scratch = static_cast<float*>(a.scratch);
    if (IsSmall(product_) && matrices_ > 1) return RunSmall(a, scratch);
    for (int64_t i = 0; i < matrices_; ++i) {
      const auto [x, w, y] = PairOf(a, i);
      IsSmall(product_) ? product_.Run(x, w, nullptr, y, scratch)
                        : blocked_.Run(x, w, nullptr, y, scratch);
    }
  }

 private:
  struct Pair {
    const float *x, *w;
    float* y;
  };
  Pair PairOf(const Arguments& a, int64_t i) const {
    const auto& p = product_;
    return {a.in<float>(0) + i * p.m * p.k, a.in<float>(1) + i * p.k * p.n,
            a.out<float>(0) + i * p.m * p.n};
  }

  void RunSmall(const Arguments& a, float* scratch) const {
    // Sixteen products are about as much work as touching an element.
    const int64_t work = product_.m * product_.n * product_.k / 16 + 1;
    ForParts(matrices_, work, product_.scratch_bytes() / sizeof(float), scratch,
             [&](int64_t i, float* own) {
               const auto [x, w, y] = PairOf(a, i);
               product_.RunAlone(x, w, nullptr, y, own);
             });
  }

  const Product product_;
  const BlockedProduct blocked_;
  const int64_t matrices_;
};

Product LinearProduct(const NodeSpec& node) {
  const tensor::Shape &x = node.inputs[0].shape, &weight = node.inputs[1].shape;
  return {
      .m = Rows(x), .k = x.dim(-1), .n = weight.dim(0), .a = {x.dim(-1), 1}, .b = {1, x.dim(-1)}};
}

// Elements of which it matters that all threads take their share.
constexpr int64_t kForAllThreads = 8192;

// Threads share a product by panels of columns, of which there may be fewer than threads.
bool KeepsThreadsBusy(const Product& product) {
  return product.n >= device::ThreadCount() * kTileColumns ||
         product.m * product.n < kForAllThreads;
}

// Of the layer's result, which is output `result`.
std::unique_ptr<Primitive> LinearWith(Activation activation, const NodeSpec& node, size_t result) {
  if (!Fits(node)) return nullptr;
  const Product product = LinearProduct(node);
  if (IsSmall(product) && KeepsThreadsBusy(product))
    return std::make_unique<MatrixKernel>(product, node.inputs.size() == 3, activation, result);
  const std::string_view op = OpOf(activation);
  const auto y = node.outputs.first(1);
  return std::make_unique<LinearThenActivation>(
      Prepare({"linear", node.attributes.With(op, int64_t{0}), node.inputs, y},
              Selection::kFastest),
      Prepare({op, {}, y, y}, Selection::kFastest), result);
}

}  // namespace

std::unique_ptr<Primitive> Linear(const NodeSpec& node) {
  const Activation activation = ActivationIn(node.attributes);
  const bool relu = activation == Activation::kRelu;
  if (activation != Activation::kNone && !relu) return LinearWith(activation, node, 0);
  Product product = LinearProduct(node);
  product.relu = relu;
  return Make(node, product, node.inputs.size() == 3);
}

std::unique_ptr<Primitive> LinearActivation(const NodeSpec& node) {
  return LinearWith(ActivationIn(node.attributes), node, 1);
}

std::unique_ptr<Primitive> MatMul(const NodeSpec& node) {
  const tensor::Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  return Make(node, ProductOf(node.attributes, {Rows(a), a.dim(-1)}, {Rows(b), b.dim(-1)}), false);
}

std::unique_ptr<Primitive> BatchMatMul(const NodeSpec& node) {
  if (!Fits(node)) return nullptr;
  const tensor::Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  const Product product =
      ProductOf(node.attributes, {a.dim(-2), a.dim(-1)}, {b.dim(-2), b.dim(-1)});
  const int64_t matrices = a.Product(0, a.rank() - 2);
  // With AVX-512 the library is as fast from here on.
  constexpr int64_t kMostWorkOfEach = int64_t{1} << 18;
  if (UsesWideTiles() && product.m * product.n > kMostWorkOfEach / product.k) return nullptr;
  return std::make_unique<MatricesKernel>(product, matrices);
}

}  // namespace ringmaster::kernels::vector

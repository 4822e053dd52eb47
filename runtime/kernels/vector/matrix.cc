#include <utility>

#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/split_product.h"
#include "runtime/kernels/vector/vector.h"

namespace ringmaster::kernels::vector {
namespace {

// Multiplications up to which a product is made in registers: beyond, blocking for caches wins, as
// on a matrix unit, or as in oneDNN.
constexpr int64_t kMostWork = int64_t{1} << 22;

int64_t Rows(const tensor::Shape& shape) {
  return shape.Product(0, shape.rank() - 1);
}

class MatrixKernel : public VectorPrimitive {
 public:
  MatrixKernel(const Product& product, bool has_bias) : product_(product), has_bias_(has_bias) {}

  size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  void Run(const Arguments& a) override { RunInto(a, a.out<float>(0), nullptr); }

 protected:
  void RunInto(const Arguments& a, float* y, float* gelu) const {
    product_.Run(a.in<float>(0), a.in<float>(1), has_bias_ ? a.in<float>(2) : nullptr, y,
                 static_cast<float*>(a.scratch), gelu);
  }

 private:
  const Product product_;
  const bool has_bias_;
};

// A linear layer whose every task takes GELU of the columns that it has just made.
class LinearGeluKernel : public MatrixKernel {
 public:
  LinearGeluKernel(const Product& product, bool has_bias) : MatrixKernel(product, has_bias) {}

  void Run(const Arguments& a) override { RunInto(a, a.out<float>(1), a.out<float>(0)); }
};

// A linear layer with GELU of a larger product, whose kernel gives nothing away before its end.
class LinearThenGelu : public Primitive {
 public:
  LinearThenGelu(std::unique_ptr<Primitive> linear, std::unique_ptr<Primitive> gelu)
      : linear_(std::move(linear)), gelu_(std::move(gelu)) {}

  size_t scratch_bytes() const override { return linear_->scratch_bytes(); }
  std::string name() const override { return linear_->name() + "+" + gelu_->name(); }
  void Run(const Arguments& a) override {
    linear_->Run({a.inputs, a.outputs + 1, a.scratch, a.context});
    const void* const result[] = {a.outputs[1]};
    gelu_->Run({result, a.outputs, nullptr, a.context});
  }

 private:
  const std::unique_ptr<Primitive> linear_, gelu_;
};

bool IsOurs(const NodeSpec& node, const Product& product) {
  return Fits(node) && product.m * product.n <= kMostWork / product.k;
}

std::unique_ptr<Primitive> Make(const NodeSpec& node, const Product& product, bool has_bias) {
  if (IsOurs(node, product)) return std::make_unique<MatrixKernel>(product, has_bias);
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
  if (!Fits(node) || !SplitProduct::Runs() || !split.Pays()) return nullptr;
  return std::make_unique<SplitKernel>(split, 0, 1, has_bias);
}

Product LinearProduct(const NodeSpec& node) {
  const tensor::Shape &x = node.inputs[0].shape, &weight = node.inputs[1].shape;
  return {.m = Rows(x),
          .k = x.dim(-1),
          .n = weight.dim(0),
          .a = {x.dim(-1), 1},
          .b = {1, x.dim(-1)},
          .relu = node.attributes.Int("relu") != 0};
}

}  // namespace

std::unique_ptr<Primitive> Linear(const NodeSpec& node) {
  return Make(node, LinearProduct(node), node.inputs.size() == 3);
}

std::unique_ptr<Primitive> LinearGelu(const NodeSpec& node) {
  const Product product = LinearProduct(node);
  if (IsOurs(node, product))
    return std::make_unique<LinearGeluKernel>(product, node.inputs.size() == 3);
  if (!Fits(node)) return nullptr;
  const auto result = node.outputs.first(1);
  return std::make_unique<LinearThenGelu>(
      Prepare({"linear", node.attributes, node.inputs, result}, Selection::kFastest),
      Gelu({"gelu", {}, result, result}));
}

std::unique_ptr<Primitive> MatMul(const NodeSpec& node) {
  const tensor::Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  const bool ta = node.attributes.Int("transpose_a") != 0,
             tb = node.attributes.Int("transpose_b") != 0;
  return Make(node,
              {.m = ta ? a.dim(-1) : Rows(a),
               .k = ta ? Rows(a) : a.dim(-1),
               .n = tb ? Rows(b) : b.dim(-1),
               .a = ta ? Strides{1, a.dim(-1)} : Strides{a.dim(-1), 1},
               .b = tb ? Strides{1, b.dim(-1)} : Strides{b.dim(-1), 1}},
              false);
}

}  // namespace ringmaster::kernels::vector

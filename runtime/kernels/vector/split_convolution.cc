#include "runtime/kernels/vector/split_convolution.h"

#include <algorithm>
#include <optional>

#include "runtime/kernels/vector/epilogue.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/split_product.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kBlock = 16;
// With fewer a step waits for images, and oneDNN's kernels pack nothing: where images are made,
// and where weights are, for which both images are packed.
constexpr int64_t kFewestForImages = 64, kFewestForWeights = 128;

struct Image {
  int64_t batch, channels, plane;

  explicit Image(const tensor::Shape& shape)
      : batch(shape.dim(0)), channels(shape.dim(1)), plane(shape.dim(2) * shape.dim(3)) {}

  SplitAxis Pixels() const { return {kBlock, kBlock * kBlock, channels * plane}; }
  SplitAxis Channels() const { return {1, kBlock * plane}; }
};

bool IsPointwise(const tensor::Shape& weight, const Attributes& attributes) {
  const auto all = [&](const char* name, int64_t value) {
    return std::ranges::all_of(attributes.Ints(name), [value](int64_t n) { return n == value; });
  };
  return weight.dim(2) == 1 && weight.dim(3) == 1 && attributes.Int("groups") <= 1 &&
         all("stride", 1) && all("padding", 0);
}

// Whether these images and weights are such.
bool Takes(const NodeSpec& node, int64_t fewest_channels, const tensor::ValueSpec& one,
           const tensor::ValueSpec& other, const tensor::ValueSpec& weight) {
  return SplitProduct::Runs() && FitsInAnyLayout(node) && one.layout == tensor::Layout::kBlocks16 &&
         other.layout == one.layout &&
         std::min(one.shape.dim(1), other.shape.dim(1)) >= fewest_channels &&
         weight.layout == tensor::Layout::kRowMajor && IsPointwise(weight.shape, node.attributes);
}

// From an image to one, whose channels weights bring together that lie so.
SplitProduct ImageProduct(const Image& from, const Image& to, SplitAxis inner, SplitAxis columns) {
  return {.m = from.plane,
          .k = from.channels,
          .n = to.channels,
          .a_rows = from.Pixels(),
          .a_inner = from.Channels(),
          .b_inner = inner,
          .b_columns = columns,
          .c_rows = to.Pixels(),
          .c_columns = to.Channels(),
          .row_groups = from.batch};
}

// Of a convolution of the node's first two inputs, where it pays.
std::optional<SplitProduct> ForwardProduct(const NodeSpec& node) {
  if (!Takes(node, kFewestForImages, node.inputs[0], node.outputs[0], node.inputs[1]))
    return std::nullopt;
  const Image x(node.inputs[0].shape), y(node.outputs[0].shape);
  SplitProduct product = ImageProduct(x, y, {1}, {x.channels});
  product.relu = node.attributes.Int("relu") != 0;
  if (!product.Pays(kFewestForImages)) return std::nullopt;
  return product;
}

// (x, weight, gamma, beta, mean, variance[, addend]) -> y.
class SplitConv2dBatchNormKernel : public SplitKernel {
 public:
  SplitConv2dBatchNormKernel(const SplitProduct& product, const BatchNormEpilogue& norm)
      : SplitKernel(product, 0, 1, false), norm_(norm) {}

  size_t scratch_bytes() const override { return SplitKernel::scratch_bytes() + norm_.bytes(); }
  void Run(const Arguments& a) override {
    char* const behind = static_cast<char*>(a.scratch) + SplitKernel::scratch_bytes();
    product().Run(a.in<float>(0), a.in<float>(1), norm_.Make(a, reinterpret_cast<float*>(behind)),
                  a.out<float>(0), a.scratch);
  }

 private:
  const BatchNormEpilogue norm_;
};

}  // namespace

std::unique_ptr<Primitive> SplitConv2d(const NodeSpec& node) {
  const auto product = ForwardProduct(node);
  if (!product) return nullptr;
  return std::make_unique<SplitKernel>(*product, 0, 1, node.inputs.size() == 3);
}

std::unique_ptr<Primitive> SplitConv2dBatchNorm(const NodeSpec& node) {
  const auto product = ForwardProduct(node);
  if (!product || !BatchNormEpilogue::Takes(node)) return nullptr;
  return std::make_unique<SplitConv2dBatchNormKernel>(*product, BatchNormEpilogue(node));
}

std::unique_ptr<Primitive> SplitConv2dGradInput(const NodeSpec& node) {
  // A third input is x, of which a ReLU before it has made something.
  if (node.inputs.size() != 2 ||
      !Takes(node, kFewestForImages, node.inputs[0], node.outputs[0], node.inputs[1]))
    return nullptr;
  const Image dy(node.inputs[0].shape), dx(node.outputs[0].shape);
  const SplitProduct product = ImageProduct(dy, dx, {dx.channels}, {1});
  if (!product.Pays(kFewestForImages)) return nullptr;
  return std::make_unique<SplitKernel>(product, 0, 1, false);
}

std::unique_ptr<Primitive> SplitConv2dGradWeight(const NodeSpec& node) {
  if (!Takes(node, kFewestForWeights, node.inputs[0], node.inputs[1], node.outputs[0]))
    return nullptr;
  const Image x(node.inputs[0].shape), dy(node.inputs[1].shape);
  const SplitProduct product{.m = dy.channels,
                             .k = x.plane,
                             .n = x.channels,
                             .a_rows = dy.Channels(),
                             .a_inner = dy.Pixels(),
                             .b_inner = x.Pixels(),
                             .b_columns = x.Channels(),
                             .c_rows = {x.channels},
                             .c_columns = {1},
                             .inner_groups = x.batch};
  if (!product.Pays()) return nullptr;
  // The result's gradient by the image.
  return std::make_unique<SplitKernel>(product, 1, 0, false);
}

}  // namespace ringmaster::kernels::vector

// A convolution and the batch norm behind it, as the two ops one after another.
#include <algorithm>
#include <vector>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/reference/through_image.h"

namespace ringmaster::kernels::reference {
namespace {

// (x, weight, gamma, beta, mean, variance[, addend]) -> y
class Conv2dBatchNormPrimitive : public ThroughImage {
 public:
  explicit Conv2dBatchNormPrimitive(const NodeSpec& node)
      : ThroughImage({OutShape(node, 0), node.outputs[0].dtype}), inputs_(node.inputs.size()) {
    first_ = Conv2d({"conv2d",
                     node.attributes.With("relu", int64_t{0}),
                     node.inputs.first(kConvolved),
                     {&image_, 1}});
    std::vector<ValueSpec> normalised{image_};
    normalised.insert(normalised.end(), node.inputs.begin() + kConvolved, node.inputs.end());
    second_ = BatchNormAgain({"batch_norm_inference", node.attributes, normalised, node.outputs});
  }

  void Run(const Arguments& a) override {
    void* const made[] = {a.scratch};
    first_->Run({a.inputs, made, nullptr, a.context});
    const void* read[kMostInputs] = {a.scratch};
    std::copy_n(a.inputs + kConvolved, inputs_ - kConvolved, read + 1);
    second_->Run({read, a.outputs, nullptr, a.context});
  }

 private:
  static constexpr size_t kConvolved = 2, kMostInputs = 6;  // of the one, and of the other

  const size_t inputs_;
};

}  // namespace

std::unique_ptr<Primitive> Conv2dBatchNorm(const NodeSpec& node) {
  return IsReal(node) ? std::make_unique<Conv2dBatchNormPrimitive>(node) : nullptr;
}

}  // namespace ringmaster::kernels::reference

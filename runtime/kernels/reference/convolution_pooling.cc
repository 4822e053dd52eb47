// A convolution that is max-pooled at once, as the two ops one after another.
#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/reference/through_image.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::reference {
namespace {

// (x, weight, bias or nothing) -> (y, taps)
class Conv2dMaxPool2dPrimitive : public ThroughImage {
 public:
  explicit Conv2dMaxPool2dPrimitive(const NodeSpec& node)
      : ThroughImage({ConvolvedShape(InShape(node, 0), InShape(node, 1), node.attributes),
                      node.outputs[0].dtype}) {
    first_ = Conv2d({"conv2d", node.attributes, node.inputs, {&image_, 1}});
    second_ =
        MaxPool2dTaps({"max_pool2d_taps", PoolingOf(node.attributes), {&image_, 1}, node.outputs});
  }

  void Run(const Arguments& a) override {
    void* const made[] = {a.scratch};
    first_->Run({a.inputs, made, nullptr, a.context});
    const void* const read[] = {a.scratch};
    second_->Run({read, a.outputs, nullptr, a.context});
  }
};

// (x, dy, taps) -> dweight
class Conv2dMaxPool2dGradWeightPrimitive : public ThroughImage {
 public:
  explicit Conv2dMaxPool2dGradWeightPrimitive(const NodeSpec& node)
      : ThroughImage({ConvolvedShape(InShape(node, 0), OutShape(node, 0), node.attributes),
                      node.outputs[0].dtype}) {
    first_ = MaxPool2dTapsGrad(
        {"max_pool2d_taps_grad", PoolingOf(node.attributes), node.inputs.subspan(1), {&image_, 1}});
    const ValueSpec convolved[] = {node.inputs[0], image_};
    second_ = Conv2dGradWeight({"conv2d_grad_weight", node.attributes, convolved, node.outputs});
  }

  void Run(const Arguments& a) override {
    void* const made[] = {a.scratch};
    first_->Run({a.inputs + 1, made, nullptr, a.context});
    const void* const read[] = {a.inputs[0], a.scratch};
    second_->Run({read, a.outputs, nullptr, a.context});
  }
};

}  // namespace

std::unique_ptr<Primitive> Conv2dMaxPool2d(const NodeSpec& node) {
  return IsReal(node) ? std::make_unique<Conv2dMaxPool2dPrimitive>(node) : nullptr;
}
std::unique_ptr<Primitive> Conv2dMaxPool2dGradWeight(const NodeSpec& node) {
  return IsReal(node) ? std::make_unique<Conv2dMaxPool2dGradWeightPrimitive>(node) : nullptr;
}

}  // namespace ringmaster::kernels::reference

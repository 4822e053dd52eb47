// A batch norm that is max-pooled at once, as the two ops one after another.
#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/reference/through_image.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::reference {
namespace {

// (x, gamma, beta) -> (y, mean, variance, taps)
class BatchNormMaxPool2dPrimitive : public ThroughImage {
 public:
  explicit BatchNormMaxPool2dPrimitive(const NodeSpec& node) : ThroughImage(node.inputs[0]) {
    const ValueSpec normalised[] = {image_, node.outputs[1], node.outputs[2]};
    first_ = BatchNorm({"batch_norm", node.attributes, node.inputs, normalised});
    const ValueSpec pooled[] = {node.outputs[0], node.outputs[3]};
    second_ = MaxPool2dTaps({"max_pool2d_taps", PoolingOf(node.attributes), {&image_, 1}, pooled});
  }

  void Run(const Arguments& a) override {
    void* const normalised[] = {a.scratch, a.outputs[1], a.outputs[2]};
    first_->Run({a.inputs, normalised, nullptr, a.context});
    const void* const read[] = {a.scratch};
    void* const pooled[] = {a.outputs[0], a.outputs[3]};
    second_->Run({read, pooled, nullptr, a.context});
  }
};

// (x, gamma, mean, variance, dy, taps) -> (dx, dgamma, dbeta)
class BatchNormMaxPool2dGradPrimitive : public ThroughImage {
 public:
  explicit BatchNormMaxPool2dGradPrimitive(const NodeSpec& node) : ThroughImage(node.inputs[0]) {
    first_ = MaxPool2dTapsGrad(
        {"max_pool2d_taps_grad", PoolingOf(node.attributes), node.inputs.subspan(4), {&image_, 1}});
    const ValueSpec in[] = {node.inputs[0], node.inputs[1], node.inputs[2], node.inputs[3], image_};
    second_ = BatchNormGrad({"batch_norm_grad", node.attributes, in, node.outputs});
  }

  void Run(const Arguments& a) override {
    void* const made[] = {a.scratch};
    first_->Run({a.inputs + 4, made, nullptr, a.context});
    const void* const read[] = {a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], a.scratch};
    second_->Run({read, a.outputs, nullptr, a.context});
  }
};

}  // namespace

std::unique_ptr<Primitive> BatchNormMaxPool2d(const NodeSpec& node) {
  return IsReal(node) ? std::make_unique<BatchNormMaxPool2dPrimitive>(node) : nullptr;
}
std::unique_ptr<Primitive> BatchNormMaxPool2dGrad(const NodeSpec& node) {
  return IsReal(node) ? std::make_unique<BatchNormMaxPool2dGradPrimitive>(node) : nullptr;
}

}  // namespace ringmaster::kernels::reference

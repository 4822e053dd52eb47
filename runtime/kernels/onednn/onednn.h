// Kernels made of oneDNN primitives, for f32. Each function prepares one for a node, or gives null
// when oneDNN does not take it. No header of oneDNN is included outside this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_ONEDNN_ONEDNN_H_
#define RINGMASTER_RUNTIME_KERNELS_ONEDNN_ONEDNN_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::onednn {

std::unique_ptr<Primitive> AvgPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AvgPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchMatMul(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2d(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node);
std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node);
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Gelu(const NodeSpec& node);
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Linear(const NodeSpec& node);
std::unique_ptr<Primitive> LinearActivation(const NodeSpec& node);
std::unique_ptr<Primitive> MatMul(const NodeSpec& node);
std::unique_ptr<Primitive> Reorder(const NodeSpec& node);
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node);
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Silu(const NodeSpec& node);
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Softmax(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Tanh(const NodeSpec& node);
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Transpose(const NodeSpec& node);

}  // namespace ringmaster::kernels::onednn

#endif  // RINGMASTER_RUNTIME_KERNELS_ONEDNN_ONEDNN_H_

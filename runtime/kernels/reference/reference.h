// The reference kernels: plain loops that say what each op means, for f32 and f64.
//
// They are what faster kernels are checked against and what runs where nothing faster fits.
// Reductions add in double and in an order that does not depend on the number of threads. Each
// function prepares a primitive for a node whose shapes the graph has checked, or gives null for a
// type that it does not take.
#ifndef RINGMASTER_RUNTIME_KERNELS_REFERENCE_REFERENCE_H_
#define RINGMASTER_RUNTIME_KERNELS_REFERENCE_REFERENCE_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::reference {

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveMaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveMaxPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Add(const NodeSpec& node);
std::unique_ptr<Primitive> AvgPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AvgPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchMatMul(const NodeSpec& node);
std::unique_ptr<Primitive> BatchMoments(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNorm(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormAddReluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormAgain(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormInferenceGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormMaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormMaxPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormSums(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormSynchronisedGrad(const NodeSpec& node);
std::unique_ptr<Primitive> BatchStatistics(const NodeSpec& node);
std::unique_ptr<Primitive> BinaryCrossEntropy(const NodeSpec& node);
std::unique_ptr<Primitive> BinaryCrossEntropyGrad(const NodeSpec& node);
std::unique_ptr<Primitive> CausalAttention(const NodeSpec& node);
std::unique_ptr<Primitive> CausalAttentionGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Concat(const NodeSpec& node);
std::unique_ptr<Primitive> Constant(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2d(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dBatchNorm(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dMaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dMaxPool2dGradWeight(const NodeSpec& node);
std::unique_ptr<Primitive> Copy(const NodeSpec& node);
std::unique_ptr<Primitive> Divide(const NodeSpec& node);
std::unique_ptr<Primitive> Dropout(const NodeSpec& node);
std::unique_ptr<Primitive> Embedding(const NodeSpec& node);
std::unique_ptr<Primitive> EmbeddingGrad(const NodeSpec& node);
std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node);
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Gelu(const NodeSpec& node);
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> LayerNorm(const NodeSpec& node);
std::unique_ptr<Primitive> LayerNormGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Linear(const NodeSpec& node);
std::unique_ptr<Primitive> LinearActivation(const NodeSpec& node);
std::unique_ptr<Primitive> LogSoftmax(const NodeSpec& node);
std::unique_ptr<Primitive> LogSoftmaxGrad(const NodeSpec& node);
std::unique_ptr<Primitive> MatMul(const NodeSpec& node);
std::unique_ptr<Primitive> MaxOver(const NodeSpec& node);
std::unique_ptr<Primitive> MaxOverGrad(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dTaps(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dTapsGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Multiply(const NodeSpec& node);
std::unique_ptr<Primitive> Nll(const NodeSpec& node);
std::unique_ptr<Primitive> NllGrad(const NodeSpec& node);
std::unique_ptr<Primitive> OneHot(const NodeSpec& node);
std::unique_ptr<Primitive> Pad(const NodeSpec& node);
std::unique_ptr<Primitive> Relu(const NodeSpec& node);
std::unique_ptr<Primitive> ReluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Reorder(const NodeSpec& node);
std::unique_ptr<Primitive> Scale(const NodeSpec& node);
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node);
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Silu(const NodeSpec& node);
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Slice(const NodeSpec& node);
std::unique_ptr<Primitive> Softmax(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxCrossEntropy(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxCrossEntropyGrad(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxGrad(const NodeSpec& node);
std::unique_ptr<Primitive> SquaredError(const NodeSpec& node);
std::unique_ptr<Primitive> SquaredErrorGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Subtract(const NodeSpec& node);
std::unique_ptr<Primitive> SumTo(const NodeSpec& node);
std::unique_ptr<Primitive> Tanh(const NodeSpec& node);
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Transpose(const NodeSpec& node);

}  // namespace ringmaster::kernels::reference

#endif  // RINGMASTER_RUNTIME_KERNELS_REFERENCE_REFERENCE_H_

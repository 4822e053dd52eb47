// Our own kernels for processors with AVX2 and FMA, for f32: small matrix products, for which
// preparing a library's call takes longer than the product, what is bound by memory, and what the
// library would take memory from the heap for. Each function prepares one for a node, or gives null
// where the node or the processor does not fit; off x86 it is always null.
//
// Each element of a result is computed by one thread in one order, so that the bits depend neither
// on the number of threads nor on how work is shared among them.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_VECTOR_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_VECTOR_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveMaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> AdaptiveMaxPool2dGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Add(const NodeSpec& node);
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
std::unique_ptr<Primitive> BinaryCrossEntropy(const NodeSpec& node);
std::unique_ptr<Primitive> BinaryCrossEntropyGrad(const NodeSpec& node);
std::unique_ptr<Primitive> CausalAttention(const NodeSpec& node);
std::unique_ptr<Primitive> CausalAttentionGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2d(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dBatchNorm(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dMaxPool2d(const NodeSpec& node);
std::unique_ptr<Primitive> Conv2dMaxPool2dGradWeight(const NodeSpec& node);
std::unique_ptr<Primitive> Divide(const NodeSpec& node);
std::unique_ptr<Primitive> Dropout(const NodeSpec& node);
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
std::unique_ptr<Primitive> Relu(const NodeSpec& node);
std::unique_ptr<Primitive> ReluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Scale(const NodeSpec& node);
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node);
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Silu(const NodeSpec& node);
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxCrossEntropy(const NodeSpec& node);
std::unique_ptr<Primitive> SoftmaxCrossEntropyGrad(const NodeSpec& node);
std::unique_ptr<Primitive> SquaredError(const NodeSpec& node);
std::unique_ptr<Primitive> SquaredErrorGrad(const NodeSpec& node);
std::unique_ptr<Primitive> Subtract(const NodeSpec& node);
std::unique_ptr<Primitive> SumTo(const NodeSpec& node);
std::unique_ptr<Primitive> Tanh(const NodeSpec& node);
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_VECTOR_H_

// Where the processor is not one that the kernels of this folder are written for: none fits.
#include "runtime/kernels/vector/vector.h"

namespace ringmaster::kernels::vector {

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> AdaptiveMaxPool2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> AdaptiveMaxPool2dGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Add(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchMatMul(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchMoments(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNorm(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormAddReluGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormAgain(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormInferenceGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormMaxPool2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormMaxPool2dGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormSums(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BatchNormSynchronisedGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BinaryCrossEntropy(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> BinaryCrossEntropyGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> CausalAttention(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> CausalAttentionGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2dBatchNorm(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2dMaxPool2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Conv2dMaxPool2dGradWeight(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Divide(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Dropout(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> EmbeddingGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> ExactGelu(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Gelu(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> LayerNorm(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> LayerNormGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Linear(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> LinearActivation(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> LogSoftmax(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> LogSoftmaxGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MatMul(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxOver(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxOverGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxPool2d(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxPool2dTaps(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> MaxPool2dTapsGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Multiply(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Nll(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Relu(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> ReluGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Scale(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Sigmoid(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Silu(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SiluGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SoftmaxCrossEntropy(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SoftmaxCrossEntropyGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SquaredError(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SquaredErrorGrad(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Subtract(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> SumTo(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> Tanh(const NodeSpec&) {
  return nullptr;
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec&) {
  return nullptr;
}

}  // namespace ringmaster::kernels::vector

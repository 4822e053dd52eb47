// The ordered lists of implementations: for each op the fastest first, the reference last.
#include <array>
#include <utility>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels {
namespace {

struct Line {
  std::string_view op;
  std::array<Implementation, 2> implementations;
  size_t count;
};

constexpr Line Only(std::string_view op, decltype(Implementation::prepare) reference) {
  return {op, {{{Family::kReference, reference}}}, 1};
}

constexpr Line OneDnnThen(std::string_view op, decltype(Implementation::prepare) onednn,
                          decltype(Implementation::prepare) reference) {
  return {op, {{{Family::kOneDnn, onednn}, {Family::kReference, reference}}}, 2};
}

constexpr std::array kLines = {
    Only("add", reference::Add),
    OneDnnThen("avg_pool2d", onednn::AvgPool2d, reference::AvgPool2d),
    OneDnnThen("avg_pool2d_grad", onednn::AvgPool2dGrad, reference::AvgPool2dGrad),
    Only("batch_norm", reference::BatchNorm),
    Only("batch_norm_grad", reference::BatchNormGrad),
    Only("batch_norm_inference", reference::BatchNormInference),
    Only("batch_norm_inference_grad", reference::BatchNormInferenceGrad),
    Only("causal_attention", reference::CausalAttention),
    Only("causal_attention_grad", reference::CausalAttentionGrad),
    Only("constant", reference::Constant),
    OneDnnThen("conv2d", onednn::Conv2d, reference::Conv2d),
    OneDnnThen("conv2d_grad_input", onednn::Conv2dGradInput, reference::Conv2dGradInput),
    OneDnnThen("conv2d_grad_weight", onednn::Conv2dGradWeight, reference::Conv2dGradWeight),
    Only("copy", reference::Copy),
    Only("dropout", reference::Dropout),
    Only("embedding", reference::Embedding),
    Only("embedding_grad", reference::EmbeddingGrad),
    OneDnnThen("gelu", onednn::Gelu, reference::Gelu),
    OneDnnThen("gelu_grad", onednn::GeluGrad, reference::GeluGrad),
    Only("layer_norm", reference::LayerNorm),
    Only("layer_norm_grad", reference::LayerNormGrad),
    OneDnnThen("linear", onednn::Linear, reference::Linear),
    OneDnnThen("matmul", onednn::MatMul, reference::MatMul),
    OneDnnThen("max_pool2d", onednn::MaxPool2d, reference::MaxPool2d),
    Only("max_pool2d_grad", reference::MaxPool2dGrad),
    Only("relu", reference::Relu),
    Only("relu_grad", reference::ReluGrad),
    Only("scale", reference::Scale),
    Only("softmax_cross_entropy", reference::SoftmaxCrossEntropy),
    Only("softmax_cross_entropy_grad", reference::SoftmaxCrossEntropyGrad),
    Only("sum_to", reference::SumTo),
    OneDnnThen("tanh", onednn::Tanh, reference::Tanh),
    OneDnnThen("tanh_grad", onednn::TanhGrad, reference::TanhGrad),
};

}  // namespace

std::span<const Implementation> ImplementationsOf(std::string_view op) {
  for (const Line& line : kLines) {
    if (line.op == op) return {line.implementations.data(), line.count};
  }
  return {};
}

}  // namespace ringmaster::kernels

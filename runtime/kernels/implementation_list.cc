// The ordered lists of implementations: for each op the fastest first, the reference last.
#include <array>
#include <utility>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/vector/vector.h"

namespace ringmaster::kernels {
namespace {

struct Line {
  std::string_view op;
  std::array<Implementation, 3> implementations;
  size_t count;
};

constexpr Line Only(std::string_view op, decltype(Implementation::prepare) reference) {
  return {op, {{{Family::kReference, reference}}}, 1};
}

constexpr Line OneDnnThen(std::string_view op, decltype(Implementation::prepare) onednn,
                          decltype(Implementation::prepare) reference) {
  return {op, {{{Family::kOneDnn, onednn}, {Family::kReference, reference}}}, 2};
}

// Ours for vectors, then the library's, then the reference.
constexpr Line VectorThen(std::string_view op, decltype(Implementation::prepare) vector,
                          decltype(Implementation::prepare) onednn,
                          decltype(Implementation::prepare) reference) {
  return {op,
          {{{Family::kVector, vector}, {Family::kOneDnn, onednn}, {Family::kReference, reference}}},
          3};
}

constexpr Line VectorThen(std::string_view op, decltype(Implementation::prepare) vector,
                          decltype(Implementation::prepare) reference) {
  return {op, {{{Family::kVector, vector}, {Family::kReference, reference}}}, 2};
}

constexpr std::array kLines = {
    Only("adaptive_avg_pool2d", reference::AdaptiveAvgPool2d),
    Only("adaptive_avg_pool2d_grad", reference::AdaptiveAvgPool2dGrad),
    Only("add", reference::Add),
    OneDnnThen("avg_pool2d", onednn::AvgPool2d, reference::AvgPool2d),
    OneDnnThen("avg_pool2d_grad", onednn::AvgPool2dGrad, reference::AvgPool2dGrad),
    VectorThen("batch_norm", vector::BatchNorm, reference::BatchNorm),
    VectorThen("batch_norm_grad", vector::BatchNormGrad, reference::BatchNormGrad),
    Only("batch_norm_inference", reference::BatchNormInference),
    Only("batch_norm_inference_grad", reference::BatchNormInferenceGrad),
    Only("binary_cross_entropy", reference::BinaryCrossEntropy),
    Only("binary_cross_entropy_grad", reference::BinaryCrossEntropyGrad),
    Only("causal_attention", reference::CausalAttention),
    Only("causal_attention_grad", reference::CausalAttentionGrad),
    Only("concat", reference::Concat),
    Only("constant", reference::Constant),
    VectorThen("conv2d", vector::Conv2d, onednn::Conv2d, reference::Conv2d),
    VectorThen("conv2d_grad_input", vector::Conv2dGradInput, onednn::Conv2dGradInput,
               reference::Conv2dGradInput),
    VectorThen("conv2d_grad_weight", vector::Conv2dGradWeight, onednn::Conv2dGradWeight,
               reference::Conv2dGradWeight),
    Only("copy", reference::Copy),
    Only("dropout", reference::Dropout),
    Only("embedding", reference::Embedding),
    Only("embedding_grad", reference::EmbeddingGrad),
    OneDnnThen("gelu", onednn::Gelu, reference::Gelu),
    OneDnnThen("gelu_grad", onednn::GeluGrad, reference::GeluGrad),
    Only("layer_norm", reference::LayerNorm),
    Only("layer_norm_grad", reference::LayerNormGrad),
    VectorThen("linear", vector::Linear, onednn::Linear, reference::Linear),
    Only("log_softmax", reference::LogSoftmax),
    Only("log_softmax_grad", reference::LogSoftmaxGrad),
    VectorThen("matmul", vector::MatMul, onednn::MatMul, reference::MatMul),
    VectorThen("max_pool2d", vector::MaxPool2d, onednn::MaxPool2d, reference::MaxPool2d),
    VectorThen("max_pool2d_grad", vector::MaxPool2dGrad, reference::MaxPool2dGrad),
    Only("nll", reference::Nll),
    Only("nll_grad", reference::NllGrad),
    Only("pad", reference::Pad),
    VectorThen("relu", vector::Relu, reference::Relu),
    VectorThen("relu_grad", vector::ReluGrad, reference::ReluGrad),
    Only("scale", reference::Scale),
    Only("slice", reference::Slice),
    Only("softmax_cross_entropy", reference::SoftmaxCrossEntropy),
    Only("softmax_cross_entropy_grad", reference::SoftmaxCrossEntropyGrad),
    Only("squared_error", reference::SquaredError),
    Only("squared_error_grad", reference::SquaredErrorGrad),
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

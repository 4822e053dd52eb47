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

// For what only copies or fills memory, at its speed, or computes a few numbers a channel.
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
    VectorThen("adaptive_avg_pool2d", vector::AdaptiveAvgPool2d, reference::AdaptiveAvgPool2d),
    VectorThen("adaptive_avg_pool2d_grad", vector::AdaptiveAvgPool2dGrad,
               reference::AdaptiveAvgPool2dGrad),
    VectorThen("adaptive_max_pool2d", vector::AdaptiveMaxPool2d, reference::AdaptiveMaxPool2d),
    VectorThen("adaptive_max_pool2d_grad", vector::AdaptiveMaxPool2dGrad,
               reference::AdaptiveMaxPool2dGrad),
    VectorThen("add", vector::Add, reference::Add),
    OneDnnThen("avg_pool2d", onednn::AvgPool2d, reference::AvgPool2d),
    OneDnnThen("avg_pool2d_grad", onednn::AvgPool2dGrad, reference::AvgPool2dGrad),
    VectorThen("batch_matmul", vector::BatchMatMul, onednn::BatchMatMul, reference::BatchMatMul),
    VectorThen("batch_moments", vector::BatchMoments, reference::BatchMoments),
    VectorThen("batch_norm", vector::BatchNorm, reference::BatchNorm),
    VectorThen("batch_norm_add_relu_grad", vector::BatchNormAddReluGrad,
               reference::BatchNormAddReluGrad),
    VectorThen("batch_norm_again", vector::BatchNormAgain, reference::BatchNormAgain),
    VectorThen("batch_norm_grad", vector::BatchNormGrad, reference::BatchNormGrad),
    VectorThen("batch_norm_inference", vector::BatchNormAgain, reference::BatchNormAgain),
    VectorThen("batch_norm_inference_grad", vector::BatchNormInferenceGrad,
               reference::BatchNormInferenceGrad),
    VectorThen("batch_norm_max_pool2d", vector::BatchNormMaxPool2d, reference::BatchNormMaxPool2d),
    VectorThen("batch_norm_max_pool2d_grad", vector::BatchNormMaxPool2dGrad,
               reference::BatchNormMaxPool2dGrad),
    VectorThen("batch_norm_sums", vector::BatchNormSums, reference::BatchNormSums),
    VectorThen("batch_norm_synchronised", vector::BatchNormAgain, reference::BatchNormAgain),
    VectorThen("batch_norm_synchronised_grad", vector::BatchNormSynchronisedGrad,
               reference::BatchNormSynchronisedGrad),
    Only("batch_statistics", reference::BatchStatistics),
    VectorThen("binary_cross_entropy", vector::BinaryCrossEntropy, reference::BinaryCrossEntropy),
    VectorThen("binary_cross_entropy_grad", vector::BinaryCrossEntropyGrad,
               reference::BinaryCrossEntropyGrad),
    VectorThen("causal_attention", vector::CausalAttention, reference::CausalAttention),
    VectorThen("causal_attention_grad", vector::CausalAttentionGrad,
               reference::CausalAttentionGrad),
    Only("concat", reference::Concat),
    Only("constant", reference::Constant),
    VectorThen("conv2d", vector::Conv2d, onednn::Conv2d, reference::Conv2d),
    VectorThen("conv2d_batch_norm", vector::Conv2dBatchNorm, reference::Conv2dBatchNorm),
    VectorThen("conv2d_grad_input", vector::Conv2dGradInput, onednn::Conv2dGradInput,
               reference::Conv2dGradInput),
    VectorThen("conv2d_grad_weight", vector::Conv2dGradWeight, onednn::Conv2dGradWeight,
               reference::Conv2dGradWeight),
    VectorThen("conv2d_max_pool2d", vector::Conv2dMaxPool2d, reference::Conv2dMaxPool2d),
    VectorThen("conv2d_max_pool2d_grad_weight", vector::Conv2dMaxPool2dGradWeight,
               reference::Conv2dMaxPool2dGradWeight),
    Only("copy", reference::Copy),
    VectorThen("divide", vector::Divide, reference::Divide),
    VectorThen("dropout", vector::Dropout, reference::Dropout),
    Only("embedding", reference::Embedding),
    VectorThen("embedding_grad", vector::EmbeddingGrad, reference::EmbeddingGrad),
    VectorThen("exact_gelu", vector::ExactGelu, onednn::ExactGelu, reference::ExactGelu),
    VectorThen("exact_gelu_grad", vector::ExactGeluGrad, onednn::ExactGeluGrad,
               reference::ExactGeluGrad),
    VectorThen("gelu", vector::Gelu, onednn::Gelu, reference::Gelu),
    VectorThen("gelu_grad", vector::GeluGrad, onednn::GeluGrad, reference::GeluGrad),
    VectorThen("layer_norm", vector::LayerNorm, reference::LayerNorm),
    VectorThen("layer_norm_grad", vector::LayerNormGrad, reference::LayerNormGrad),
    VectorThen("linear", vector::Linear, onednn::Linear, reference::Linear),
    VectorThen("linear_activation", vector::LinearActivation, onednn::LinearActivation,
               reference::LinearActivation),
    VectorThen("log_softmax", vector::LogSoftmax, reference::LogSoftmax),
    VectorThen("log_softmax_grad", vector::LogSoftmaxGrad, reference::LogSoftmaxGrad),
    VectorThen("matmul", vector::MatMul, onednn::MatMul, reference::MatMul),
    VectorThen("max_over", vector::MaxOver, reference::MaxOver),
    VectorThen("max_over_grad", vector::MaxOverGrad, reference::MaxOverGrad),
    VectorThen("max_pool2d", vector::MaxPool2d, reference::MaxPool2d),
    VectorThen("max_pool2d_grad", vector::MaxPool2dGrad, reference::MaxPool2dGrad),
    VectorThen("max_pool2d_taps", vector::MaxPool2dTaps, reference::MaxPool2dTaps),
    VectorThen("max_pool2d_taps_grad", vector::MaxPool2dTapsGrad, reference::MaxPool2dTapsGrad),
    VectorThen("multiply", vector::Multiply, reference::Multiply),
    VectorThen("nll", vector::Nll, reference::Nll),
    Only("nll_grad", reference::NllGrad),
    Only("one_hot", reference::OneHot),
    Only("pad", reference::Pad),
    VectorThen("relu", vector::Relu, reference::Relu),
    VectorThen("relu_grad", vector::ReluGrad, reference::ReluGrad),
    OneDnnThen("reorder", onednn::Reorder, reference::Reorder),
    VectorThen("scale", vector::Scale, reference::Scale),
    VectorThen("sigmoid", vector::Sigmoid, onednn::Sigmoid, reference::Sigmoid),
    VectorThen("sigmoid_grad", vector::SigmoidGrad, onednn::SigmoidGrad, reference::SigmoidGrad),
    VectorThen("silu", vector::Silu, onednn::Silu, reference::Silu),
    VectorThen("silu_grad", vector::SiluGrad, onednn::SiluGrad, reference::SiluGrad),
    Only("slice", reference::Slice),
    OneDnnThen("softmax", onednn::Softmax, reference::Softmax),
    VectorThen("softmax_cross_entropy", vector::SoftmaxCrossEntropy,
               reference::SoftmaxCrossEntropy),
    VectorThen("softmax_cross_entropy_grad", vector::SoftmaxCrossEntropyGrad,
               reference::SoftmaxCrossEntropyGrad),
    OneDnnThen("softmax_grad", onednn::SoftmaxGrad, reference::SoftmaxGrad),
    VectorThen("squared_error", vector::SquaredError, reference::SquaredError),
    VectorThen("squared_error_grad", vector::SquaredErrorGrad, reference::SquaredErrorGrad),
    VectorThen("subtract", vector::Subtract, reference::Subtract),
    Only("sum_over_shards", reference::Copy),
    VectorThen("sum_to", vector::SumTo, reference::SumTo),
    VectorThen("tanh", vector::Tanh, onednn::Tanh, reference::Tanh),
    VectorThen("tanh_grad", vector::TanhGrad, onednn::TanhGrad, reference::TanhGrad),
    OneDnnThen("transpose", onednn::Transpose, reference::Transpose),
};

}  // namespace

std::span<const Implementation> ImplementationsOf(std::string_view op) {
  for (const Line& line : kLines) {
    if (line.op == op) return {line.implementations.data(), line.count};
  }
  return {};
}

}  // namespace ringmaster::kernels

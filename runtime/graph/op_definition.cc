#include "runtime/graph/op_definition.h"

#include <array>

#include <fmt/format.h>

#include "runtime/graph/ops/definitions.h"

namespace ringmaster::graph {
namespace {

// Pointers, so that the table needs no initialisation order between files.
constexpr std::array kOps = {
    &kAdaptiveAvgPool2d,
    &kAdaptiveAvgPool2dGrad,
    &kAdaptiveMaxPool2d,
    &kAdaptiveMaxPool2dGrad,
    &kAdd,
    &kAvgPool2d,
    &kAvgPool2dGrad,
    &kBatchMatMul,
    &kBatchMoments,
    &kBatchNorm,
    &kBatchNormAddReluGrad,
    &kBatchNormAgain,
    &kBatchNormGrad,
    &kBatchNormInference,
    &kBatchNormInferenceGrad,
    &kBatchNormMaxPool2d,
    &kBatchNormMaxPool2dGrad,
    &kBatchNormSums,
    &kBatchNormSynchronised,
    &kBatchNormSynchronisedGrad,
    &kBatchStatistics,
    &kBinaryCrossEntropy,
    &kBinaryCrossEntropyGrad,
    &kCausalAttention,
    &kCausalAttentionGrad,
    &kConcat,
    &kConstant,
    &kConv2d,
    &kConv2dBatchNorm,
    &kConv2dGradInput,
    &kConv2dGradWeight,
    &kConv2dMaxPool2d,
    &kConv2dMaxPool2dGradWeight,
    &kCopy,
    &kDivide,
    &kDropout,
    &kEmbedding,
    &kEmbeddingGrad,
    &kExactGelu,
    &kExactGeluGrad,
    &kGelu,
    &kGeluGrad,
    &kLayerNorm,
    &kLayerNormGrad,
    &kLinear,
    &kLinearActivation,
    &kLogSoftmax,
    &kLogSoftmaxGrad,
    &kMatMul,
    &kMaxOver,
    &kMaxOverGrad,
    &kMaxPool2d,
    &kMaxPool2dGrad,
    &kMaxPool2dTaps,
    &kMaxPool2dTapsGrad,
    &kMultiply,
    &kNll,
    &kNllGrad,
    &kOneHot,
    &kPad,
    &kRelu,
    &kReluGrad,
    &kReorder,
    &kReshape,
    &kScale,
    &kSigmoid,
    &kSigmoidGrad,
    &kSilu,
    &kSiluGrad,
    &kSlice,
    &kSoftmax,
    &kSoftmaxCrossEntropy,
    &kSoftmaxCrossEntropyGrad,
    &kSoftmaxGrad,
    &kSquaredError,
    &kSquaredErrorGrad,
    &kSubtract,
    &kSumOverShards,
    &kSumTo,
    &kTanh,
    &kTanhGrad,
    &kTranspose,
};

}  // namespace

GradientContext::GradientContext(Graph& graph, const Node& node,
                                 std::vector<ValueId> output_gradients, std::vector<bool> needed)
    : graph_(graph),
      node_(node),
      output_gradients_(std::move(output_gradients)),
      needed_(std::move(needed)),
      gradients_(node_.inputs.size()) {}

std::string GradientContext::Name(std::string_view what) const {
  return fmt::format("grad/{}/{}", node_.name, what);
}

const OpDefinition* FindOp(std::string_view type) {
  for (const OpDefinition* op : kOps) {
    if (op->type == type) return op;
  }
  return nullptr;
}

std::span<const OpDefinition* const> AllOps() {
  return kOps;
}

}  // namespace ringmaster::graph

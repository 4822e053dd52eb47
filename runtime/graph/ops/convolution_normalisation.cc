// Convolution over [N, C, H, W] and the batch norm behind it, as FuseConvNorm makes it of two ops.
#include <vector>

#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

Specs InferConv2dBatchNorm(const InferContext& context) {
  constexpr size_t kConvolved = 2, kLeast = 6;
  const size_t count = context.inputs.size();
  if (count != kLeast && count != kLeast + 1) return Misfit("takes 6 or 7 inputs");
  RM_ASSIGN_OR_RETURN(std::vector<ValueSpec> normalised,
                      kConv2d.infer({context.attributes, context.inputs.first(kConvolved)}));
  normalised.insert(normalised.end(), context.inputs.begin() + kConvolved, context.inputs.end());
  return kBatchNormInference.infer({context.attributes, normalised});
}

}  // namespace

// (x, weight, gamma, beta, mean, variance[, addend]) -> y, with the attributes of both. It has no
// gradient: gradients are built before the passes.
constinit const OpDefinition kConv2dBatchNorm{"conv2d_batch_norm", 1, InferConv2dBatchNorm,
                                              nullptr};

}  // namespace ringmaster::graph

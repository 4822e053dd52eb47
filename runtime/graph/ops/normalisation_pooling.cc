// Batch norm over [N, C, H, W] that is max-pooled at once, as FuseNormMaxPool makes it of two ops.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"
#include "runtime/kernels/window.h"

namespace ringmaster::graph {
namespace {

// What is pooled, the statistics, and for each pooled pixel which place of its window it was.
Specs InferBatchNormMaxPool(const InferContext& context) {
  if (context.inputs.size() != 3) return Misfit("takes 3 inputs");
  RM_ASSIGN_OR_RETURN(const std::vector<ValueSpec> norm, kBatchNorm.infer(context));
  const InferContext pooling{kernels::PoolingOf(context.attributes), {norm.data(), 1}};
  RM_ASSIGN_OR_RETURN(const std::vector<ValueSpec> pooled, kMaxPool2dTaps.infer(pooling));
  return std::vector{pooled[0], norm[1], norm[2], pooled[1]};
}

// dx, dgamma, dbeta from (x, gamma, mean, variance, dy, taps).
Specs InferBatchNormMaxPoolGrad(const InferContext& context) {
  constexpr size_t kPooled = 4;
  if (context.inputs.size() != kPooled + 2) return Misfit("takes 6 inputs");
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, kPooled + 1));
  const InferContext pooling{kernels::PoolingOf(context.attributes), context.inputs.first(1)};
  RM_ASSIGN_OR_RETURN(const std::vector<ValueSpec> pooled, kMaxPool2dTaps.infer(pooling));
  for (size_t i = 0; i < pooled.size(); ++i) {
    const ValueSpec& found = context.inputs[kPooled + i];
    if (found.shape != pooled[i].shape || found.dtype != pooled[i].dtype)
      return Misfit(
          fmt::format("{} must be {}", i == 0 ? "dy" : "the places", pooled[i].ToString()));
  }
  return std::vector{context.inputs[0], context.inputs[1], context.inputs[1]};
}

void BatchNormMaxPoolGradient(GradientContext& c) {
  Graph& g = c.graph();
  ValueId dy = c.output_gradient(0);
  // Where the ReLU let nothing pass, the pooled pixel says so.
  if (c.attributes().Int("relu") != 0)
    dy = g.AddOne("relu_grad", {}, {c.output(0), dy}, c.Name("relu"));
  const ValueId inputs[] = {c.input(0), c.input(1), c.output(1), c.output(2), dy, c.output(3)};
  const auto gradients = g.Add("batch_norm_max_pool2d_grad",
                               c.attributes().With("relu", int64_t{0}), inputs, 3, c.Name("x"));
  for (int i = 0; i < 3; ++i) {
    if (c.Needs(i)) c.SetGradient(i, gradients[static_cast<size_t>(i)]);
  }
}

}  // namespace

constinit const OpDefinition kBatchNormMaxPool2d{"batch_norm_max_pool2d", 4, InferBatchNormMaxPool,
                                                 BatchNormMaxPoolGradient};
constinit const OpDefinition kBatchNormMaxPool2dGrad{"batch_norm_max_pool2d_grad", 3,
                                                     InferBatchNormMaxPoolGrad, nullptr};

}  // namespace ringmaster::graph

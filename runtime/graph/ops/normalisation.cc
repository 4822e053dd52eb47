// Batch norm and layer norm.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

absl::Status CheckEpsilon(const InferContext& context) {
  if (context.attributes.Real("epsilon") > 0.0) return absl::OkStatus();
  return Misfit("epsilon must be positive");
}

// x of [N, C] or [N, C, H, W], and every input from the second on of [C].
absl::Status CheckChannels(const InferContext& context, size_t inputs) {
  RM_RETURN_IF_ERROR(CheckReal(context, inputs, inputs));
  RM_RETURN_IF_ERROR(CheckEpsilon(context));
  const Shape& x = context.inputs[0].shape;
  if (x.rank() != 2 && x.rank() != 4) return Misfit("x must be [N, C] or [N, C, H, W]");
  static constexpr const char* kNames[] = {"x", "gamma", "beta", "mean", "variance"};
  for (size_t i = 1; i < inputs; ++i)
    RM_RETURN_IF_ERROR(CheckShape(context, i, {x.dim(1)}, kNames[i]));
  return absl::OkStatus();
}

// With the attribute "relu", y is its positive part; an addend like x is added before. Passes
// (passes/fuse_relu.cc) make nodes of this kind, models do not.
Specs InferBatchNorm(const InferContext& context) {
  if (context.inputs.size() == 4) {
    RM_RETURN_IF_ERROR(CheckShape(context, 3, context.inputs[0].shape, "the addend"));
    return InferBatchNorm({context.attributes, context.inputs.first(3)});
  }
  RM_RETURN_IF_ERROR(CheckChannels(context, 3));
  const ValueSpec statistic{{context.inputs[0].shape.dim(1)}, context.inputs[0].dtype};
  return std::vector{context.inputs[0], statistic, statistic};
}

// With "relu" and an addend as batch_norm has them.
Specs InferBatchNormAgain(const InferContext& context) {
  if (context.inputs.size() == 6) {
    RM_RETURN_IF_ERROR(CheckShape(context, 5, context.inputs[0].shape, "the addend"));
    return InferBatchNormAgain({context.attributes, context.inputs.first(5)});
  }
  RM_RETURN_IF_ERROR(CheckChannels(context, 5));
  return std::vector{context.inputs[0]};
}

Specs InferBatchNormInference(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckChannels(context, 5));
  return std::vector{context.inputs[0]};
}

// dx, dgamma, dbeta from (x, gamma, ...).
Specs InferNormGrad(const InferContext& context) {
  return std::vector{context.inputs[0], context.inputs[1], context.inputs[1]};
}

void SetAll(GradientContext& c, std::span<const ValueId> gradients) {
  for (int i = 0; i < 3; ++i) {
    if (c.Needs(i)) c.SetGradient(i, gradients[static_cast<size_t>(i)]);
  }
}

void BatchNormGradient(GradientContext& c) {
  const ValueId inputs[] = {c.input(0), c.input(1), c.output(1), c.output(2), c.output_gradient(0)};
  SetAll(c, c.graph().Add("batch_norm_grad", c.attributes(), inputs, 3, c.Name("x")));
}

void BatchNormInferenceGradient(GradientContext& c) {
  if (c.Needs(3) || c.Needs(4)) {
    c.graph().Fail(
        absl::UnimplementedError("batch_norm_inference: no gradient by mean and variance"));
    return;
  }
  const ValueId inputs[] = {c.input(0), c.input(1), c.input(3), c.input(4), c.output_gradient(0)};
  SetAll(c, c.graph().Add("batch_norm_inference_grad", c.attributes(), inputs, 3, c.Name("x")));
}

Specs InferLayerNorm(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 3, 3));
  RM_RETURN_IF_ERROR(CheckEpsilon(context));
  const Shape& x = context.inputs[0].shape;
  if (x.rank() < 1) return Misfit("x needs at least one axis");
  RM_RETURN_IF_ERROR(CheckShape(context, 1, {x.dim(-1)}, "gamma"));
  RM_RETURN_IF_ERROR(CheckShape(context, 2, {x.dim(-1)}, "beta"));
  const ValueSpec statistic{WithoutLast(x), context.inputs[0].dtype};
  return std::vector{context.inputs[0], statistic, statistic};
}

void LayerNormGradient(GradientContext& c) {
  const ValueId inputs[] = {c.input(0), c.input(1), c.output(1), c.output(2), c.output_gradient(0)};
  SetAll(c, c.graph().Add("layer_norm_grad", c.attributes(), inputs, 3, c.Name("x")));
}

}  // namespace

constinit const OpDefinition kBatchNorm{"batch_norm", 3, InferBatchNorm, BatchNormGradient};
// (x, gamma, beta, mean, variance[, addend]) -> y with the bits of the batch_norm that made the
// statistics, without another pass for them. passes/recompute.cc makes nodes of this kind.
constinit const OpDefinition kBatchNormAgain{"batch_norm_again", 1, InferBatchNormAgain, nullptr};
// (x, gamma, mean, variance, dy), or with the attribute "relu", where dy is the gradient of the
// positive part, (x, gamma, mean, variance, dy, beta).
constinit const OpDefinition kBatchNormGrad{"batch_norm_grad", 3, InferNormGrad, nullptr};
constinit const OpDefinition kBatchNormInference{"batch_norm_inference", 1, InferBatchNormInference,
                                                 BatchNormInferenceGradient};
constinit const OpDefinition kBatchNormInferenceGrad{"batch_norm_inference_grad", 3, InferNormGrad,
                                                     nullptr};
constinit const OpDefinition kLayerNorm{"layer_norm", 3, InferLayerNorm, LayerNormGradient};
constinit const OpDefinition kLayerNormGrad{"layer_norm_grad", 3, InferNormGrad, nullptr};

BatchNormResult BatchNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta, double epsilon,
                          std::string_view name) {
  const ValueId inputs[] = {x, gamma, beta};
  const auto outputs = g.Add("batch_norm", {{"epsilon", epsilon}}, inputs, 3, name);
  return {outputs[0], outputs[1], outputs[2]};
}

ValueId BatchNormInference(Graph& g, ValueId x, ValueId gamma, ValueId beta, ValueId mean,
                           ValueId variance, double epsilon, std::string_view name) {
  return g.AddOne("batch_norm_inference", {{"epsilon", epsilon}}, {x, gamma, beta, mean, variance},
                  name);
}

ValueId LayerNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta, double epsilon,
                  std::string_view name) {
  const ValueId inputs[] = {x, gamma, beta};
  return g.Add("layer_norm", {{"epsilon", epsilon}}, inputs, 3, name)[0];
}

}  // namespace ringmaster::graph

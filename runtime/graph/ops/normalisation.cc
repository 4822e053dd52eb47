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

// Two sums of each channel and what they count, which shards add up: [2 C + 1].
ValueSpec SumsOf(const Shape& x) {
  return {{2 * x.dim(1) + 1}, DType::kF64};
}

absl::Status CheckSums(const InferContext& context, size_t i, const Shape& x) {
  if (context.inputs[i].dtype != DType::kF64) return Misfit("sums over shards are f64");
  return CheckShape(context, i, SumsOf(x).shape, "the sums");
}

Specs InferBatchMoments(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  const Shape& x = context.inputs[0].shape;
  if (x.rank() != 2 && x.rank() != 4) return Misfit("x must be [N, C] or [N, C, H, W]");
  return std::vector{SumsOf(x)};
}

Specs InferSumOverShards(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  if (context.inputs[0].dtype != DType::kF64) return Misfit("sums over shards are f64");
  return std::vector{context.inputs[0]};
}

Specs InferBatchStatistics(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  RM_RETURN_IF_ERROR(CheckRank(context, 0, 1, "the sums"));
  const int64_t sums = context.inputs[0].shape.dim(0);
  if (sums < 3 || sums % 2 == 0) return Misfit("the sums must be [2 C + 1]");
  const auto dtype = static_cast<DType>(context.attributes.Int("dtype"));
  if (dtype != DType::kF32 && dtype != DType::kF64) return Misfit("statistics must be f32 or f64");
  const ValueSpec statistic{{sums / 2}, dtype};
  return std::vector{statistic, statistic, statistic};
}

// From (x, mean, variance, dy).
Specs InferBatchNormSums(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 4, 4));
  RM_RETURN_IF_ERROR(CheckEpsilon(context));
  const Shape& x = context.inputs[0].shape;
  if (x.rank() != 2 && x.rank() != 4) return Misfit("x must be [N, C] or [N, C, H, W]");
  RM_RETURN_IF_ERROR(CheckShape(context, 1, {x.dim(1)}, "mean"));
  RM_RETURN_IF_ERROR(CheckShape(context, 2, {x.dim(1)}, "variance"));
  RM_RETURN_IF_ERROR(CheckShape(context, 3, x, "dy"));
  return std::vector{SumsOf(x), context.inputs[1], context.inputs[1]};
}

// dx from (x, gamma, mean, variance, dy, sums).
Specs InferBatchNormSynchronisedGrad(const InferContext& context) {
  constexpr size_t kSums = 5;
  if (context.inputs.size() != kSums + 1) return Misfit("takes 6 inputs");
  const InferContext own{context.attributes, context.inputs.first(kSums)};
  RM_RETURN_IF_ERROR(CheckReal(own, kSums, kSums));
  RM_RETURN_IF_ERROR(CheckEpsilon(context));
  const Shape& x = context.inputs[0].shape;
  RM_RETURN_IF_ERROR(CheckShape(context, 4, x, "dy"));
  RM_RETURN_IF_ERROR(CheckSums(context, kSums, x));
  return std::vector{context.inputs[0]};
}

// dx, dgamma, dbeta from (x, gamma, ...).
Specs InferNormGrad(const InferContext& context) {
  return std::vector{context.inputs[0], context.inputs[1], context.inputs[1]};
}

// dx, dgamma, dbeta and the addend's gradient from (x, gamma, mean, variance, y, dy[, dy2]).
Specs InferBatchNormAddReluGrad(const InferContext& context) {
  constexpr size_t kLeast = 6;
  const size_t count = context.inputs.size();
  if (count != kLeast && count != kLeast + 1) return Misfit("takes 6 or 7 inputs");
  RM_RETURN_IF_ERROR(CheckReal(context, count, count));
  RM_RETURN_IF_ERROR(CheckEpsilon(context));
  const Shape& x = context.inputs[0].shape;
  static constexpr const char* kNames[] = {"y", "dy", "dy2"};
  for (size_t i = 4; i < count; ++i) RM_RETURN_IF_ERROR(CheckShape(context, i, x, kNames[i - 4]));
  return std::vector{context.inputs[0], context.inputs[1], context.inputs[1], context.inputs[0]};
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

ValueId SumOverShards(Graph& g, ValueId sums, std::string_view name) {
  return g.AddOne("sum_over_shards", {}, {sums}, name);
}

// That the statistics depend on x is in dx, so that nothing flows back through them.
void BatchNormSynchronisedGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId x = c.input(0), mean = c.input(3), variance = c.input(4), dy = c.output_gradient(0);
  const ValueId inputs[] = {x, mean, variance, dy};
  const auto own = g.Add("batch_norm_sums", c.attributes(), inputs, 3, c.Name("sums"));
  if (c.Needs(1)) c.SetGradient(1, own[1]);
  if (c.Needs(2)) c.SetGradient(2, own[2]);
  if (!c.Needs(0)) return;
  const ValueId all = SumOverShards(g, own[0], c.Name("all_shards"));
  c.SetGradient(0, g.AddOne("batch_norm_synchronised_grad", c.attributes(),
                            {x, c.input(1), mean, variance, dy, all}, c.Name("x")));
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
// From (x, gamma, mean, variance, y, dy[, dy2]), where y is the positive part of a batch norm's
// result plus an addend and dy (or the sum of both) its gradient: dx, dgamma, dbeta, and the
// addend's gradient. passes/fuse_residual_grad.cc makes nodes of this kind.
constinit const OpDefinition kBatchNormAddReluGrad{"batch_norm_add_relu_grad", 4,
                                                   InferBatchNormAddReluGrad, nullptr};
// Each channel's sum, sum of squares, and the count of what was added: a shard's part of
// batch_statistics.
constinit const OpDefinition kBatchMoments{"batch_moments", 1, InferBatchMoments, nullptr};
// What all shards of the step have there, added in the order of the shards. A run waits for it
// (Executor::Advance).
constinit const OpDefinition kSumOverShards{.type = "sum_over_shards",
                                            .output_count = 1,
                                            .infer = InferSumOverShards,
                                            .gradient = nullptr,
                                            .over_shards = true};
// Mean, variance, and unbiased variance (divided by the count less one) from the sums of
// batch_moments, of the type "dtype".
constinit const OpDefinition kBatchStatistics{"batch_statistics", 3, InferBatchStatistics, nullptr};
// As batch_norm_again, of statistics that all shards have made together.
constinit const OpDefinition kBatchNormSynchronised{
    "batch_norm_synchronised", 1, InferBatchNormAgain, BatchNormSynchronisedGradient};
// From (x, mean, variance, dy) each channel's sum of dy and of dy * (x - mean) and the count, which
// is a shard's part of batch_norm_synchronised_grad's last input; and dgamma and dbeta.
constinit const OpDefinition kBatchNormSums{"batch_norm_sums", 3, InferBatchNormSums, nullptr};
constinit const OpDefinition kBatchNormSynchronisedGrad{"batch_norm_synchronised_grad", 1,
                                                        InferBatchNormSynchronisedGrad, nullptr};
constinit const OpDefinition kBatchNormInference{"batch_norm_inference", 1, InferBatchNormAgain,
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

BatchNormResult SynchronisedBatchNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta,
                                      double epsilon, std::string_view name) {
  const auto part = [&](const char* what) {
    return name.empty() ? std::string() : fmt::format("{}/{}", name, what);
  };
  if (!x.valid()) return {};
  const ValueId own = g.AddOne("batch_moments", {}, {x}, part("moments"));
  const ValueId all = SumOverShards(g, own, part("all_shards"));
  const auto statistics =
      g.Add("batch_statistics", {{"dtype", static_cast<int64_t>(g.spec(x).dtype)}}, {&all, 1}, 3,
            part("statistics"));
  const ValueId y = g.AddOne("batch_norm_synchronised", {{"epsilon", epsilon}},
                             {x, gamma, beta, statistics[0], statistics[1]}, name);
  return {y, statistics[0], statistics[2]};
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

// Losses.
#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

// That there are scores [..., classes] and i32 labels [...].
absl::Status CheckClasses(const InferContext& context, const char* scores) {
  if (context.inputs.size() != 2) return Misfit(fmt::format("takes {} and labels", scores));
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, 1));
  RM_RETURN_IF_ERROR(CheckIndices(context, 1, "labels"));
  const Shape& shape = context.inputs[0].shape;
  if (shape.rank() < 1) return Misfit(fmt::format("{} need an axis of classes", scores));
  return CheckShape(context, 1, WithoutLast(shape), "labels");
}

ValueSpec ScalarOf(const InferContext& context) {
  return {{}, context.inputs[0].dtype};
}

// Outputs: loss, correct, and the probabilities that the gradient starts from.
Specs InferCrossEntropy(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckClasses(context, "logits"));
  const double smoothing = context.attributes.Real("smoothing");
  if (!(smoothing >= 0.0 && smoothing < 1.0)) {
    return Misfit(fmt::format("smoothing must lie in [0, 1), got {}", smoothing));
  }
  return std::vector{ScalarOf(context), ScalarOf(context), context.inputs[0]};
}

void CrossEntropyGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("softmax_cross_entropy_grad", c.attributes(),
                          {c.output(2), c.input(1), c.output_gradient(0)}, c.Name("logits")));
}

Specs InferBinary(const InferContext& context) {
  if (context.inputs.size() != 2) return Misfit("takes logits and labels");
  RM_RETURN_IF_ERROR(CheckRealPrefix(context, 1));
  RM_RETURN_IF_ERROR(CheckIndices(context, 1, "labels"));
  RM_RETURN_IF_ERROR(CheckShape(context, 1, context.inputs[0].shape, "labels"));
  return std::vector{ScalarOf(context), ScalarOf(context)};
}

void BinaryGradient(GradientContext& c) {
  c.SetGradient(0,
                c.graph().AddOne("binary_cross_entropy_grad", {},
                                 {c.input(0), c.input(1), c.output_gradient(0)}, c.Name("logits")));
}

Specs InferNll(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckClasses(context, "log-probabilities"));
  return std::vector{ScalarOf(context), ScalarOf(context)};
}

void NllGradient(GradientContext& c) {
  const Attributes attributes = {{"shape", ToInts(c.graph().shape(c.input(0)))}};
  c.SetGradient(0, c.graph().AddOne("nll_grad", attributes, {c.output_gradient(0), c.input(1)},
                                    c.Name("log_probabilities")));
}

Specs InferOneHot(const InferContext& context) {
  if (context.inputs.size() != 1) return Misfit("takes labels");
  RM_RETURN_IF_ERROR(CheckIndices(context, 0, "labels"));
  const int64_t classes = context.attributes.Int("classes");
  if (classes < 1) return Misfit(fmt::format("at least 1 class is needed, got {}", classes));
  const auto dtype = static_cast<DType>(context.attributes.Int("dtype"));
  if (dtype != DType::kF32 && dtype != DType::kF64) return Misfit("the rows must be f32 or f64");
  std::vector<int64_t> dims = ToInts(context.inputs[0].shape);
  dims.push_back(classes);
  if (dims.size() > Shape::kMaxRank) return Misfit("labels have too many axes");
  return std::vector{ValueSpec{Shape(dims), dtype}};
}

Specs InferSquaredError(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 2, 2));
  RM_RETURN_IF_ERROR(CheckShape(context, 1, context.inputs[0].shape, "target"));
  return std::vector{ScalarOf(context)};
}

void SquaredErrorGradient(GradientContext& c) {
  Graph& g = c.graph();
  const ValueId dy = c.output_gradient(0);
  if (c.Needs(0)) {
    c.SetGradient(0, g.AddOne("squared_error_grad", {}, {c.input(0), c.input(1), dy}, c.Name("x")));
  }
  if (c.Needs(1)) {
    c.SetGradient(
        1, g.AddOne("squared_error_grad", {}, {c.input(1), c.input(0), dy}, c.Name("target")));
  }
}

}  // namespace

constinit const OpDefinition kSoftmaxCrossEntropy{"softmax_cross_entropy", 3, InferCrossEntropy,
                                                  CrossEntropyGradient};
constinit const OpDefinition kSoftmaxCrossEntropyGrad{"softmax_cross_entropy_grad", 1,
                                                      InferLikeFirst, nullptr};
constinit const OpDefinition kBinaryCrossEntropy{"binary_cross_entropy", 2, InferBinary,
                                                 BinaryGradient};
constinit const OpDefinition kBinaryCrossEntropyGrad{"binary_cross_entropy_grad", 1, InferLikeFirst,
                                                     nullptr};
constinit const OpDefinition kNll{"nll", 2, InferNll, NllGradient};
constinit const OpDefinition kNllGrad{"nll_grad", 1, InferFromAttribute, nullptr};
constinit const OpDefinition kOneHot{"one_hot", 1, InferOneHot, nullptr};
constinit const OpDefinition kSquaredError{"squared_error", 1, InferSquaredError,
                                           SquaredErrorGradient};
constinit const OpDefinition kSquaredErrorGrad{"squared_error_grad", 1, InferLikeFirst, nullptr};

LossResult SoftmaxCrossEntropy(Graph& g, ValueId logits, ValueId labels, double smoothing,
                               std::string_view name) {
  const ValueId inputs[] = {logits, labels};
  const auto outputs = g.Add("softmax_cross_entropy", {{"smoothing", smoothing}}, inputs, 3, name);
  return {outputs[0], outputs[1]};
}

LossResult BinaryCrossEntropy(Graph& g, ValueId logits, ValueId labels, std::string_view name) {
  const ValueId inputs[] = {logits, labels};
  const auto outputs = g.Add("binary_cross_entropy", {}, inputs, 2, name);
  return {outputs[0], outputs[1]};
}

LossResult Nll(Graph& g, ValueId log_probabilities, ValueId labels, std::string_view name) {
  const ValueId inputs[] = {log_probabilities, labels};
  const auto outputs = g.Add("nll", {}, inputs, 2, name);
  return {outputs[0], outputs[1]};
}

ValueId SquaredError(Graph& g, ValueId x, ValueId target, std::string_view name) {
  return g.AddOne("squared_error", {}, {x, target}, name);
}

ValueId OneHot(Graph& g, ValueId labels, int64_t classes, DType dtype, std::string_view name) {
  return g.AddOne("one_hot", {{"classes", classes}, {"dtype", static_cast<int64_t>(dtype)}},
                  {labels}, name);
}

LossResult MeanSquare(Graph& g, ValueId scores, ValueId labels, std::string_view name) {
  if (!scores.valid() || g.shape(scores).rank() < 1) {
    g.Fail(absl::InvalidArgumentError("mean square: scores need an axis of classes"));
    return {};
  }
  const std::string prefix = name.empty() ? "mean_square" : std::string(name);
  const int64_t classes = g.shape(scores).dim(-1);
  const ValueId target = OneHot(g, labels, classes, g.spec(scores).dtype, prefix + ".target");
  const ValueId sum = SquaredError(g, scores, target, prefix + ".sum");
  return {Scale(g, sum, 1.0 / static_cast<double>(classes), name),
          Nll(g, scores, labels, prefix + ".correct").correct};
}

}  // namespace ringmaster::graph

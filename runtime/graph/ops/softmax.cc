// Softmax, and its logarithm, over the last axis.
#include "runtime/graph/ops.h"
#include "runtime/graph/ops/definitions.h"
#include "runtime/graph/ops/infer.h"

namespace ringmaster::graph {
namespace {

Specs InferSoftmax(const InferContext& context) {
  RM_RETURN_IF_ERROR(CheckReal(context, 1, 1));
  if (context.inputs[0].shape.rank() < 1) return Misfit("x needs an axis of classes");
  return std::vector{context.inputs[0]};
}

void SoftmaxGradient(GradientContext& c) {
  c.SetGradient(
      0, c.graph().AddOne("softmax_grad", {}, {c.output(0), c.output_gradient(0)}, c.Name("x")));
}

void LogSoftmaxGradient(GradientContext& c) {
  c.SetGradient(0, c.graph().AddOne("log_softmax_grad", {}, {c.output(0), c.output_gradient(0)},
                                    c.Name("x")));
}

}  // namespace

constinit const OpDefinition kSoftmax{"softmax", 1, InferSoftmax, SoftmaxGradient};
constinit const OpDefinition kSoftmaxGrad{"softmax_grad", 1, InferSamePair, nullptr};
constinit const OpDefinition kLogSoftmax{"log_softmax", 1, InferSoftmax, LogSoftmaxGradient};
constinit const OpDefinition kLogSoftmaxGrad{"log_softmax_grad", 1, InferSamePair, nullptr};

ValueId Softmax(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("softmax", {}, {x}, name);
}

ValueId LogSoftmax(Graph& g, ValueId x, std::string_view name) {
  return g.AddOne("log_softmax", {}, {x}, name);
}

}  // namespace ringmaster::graph

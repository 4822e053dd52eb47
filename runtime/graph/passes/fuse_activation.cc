#include <algorithm>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"
#include "runtime/kernels/activation.h"

namespace ringmaster::graph {
namespace {

using kernels::Activation;

// The activation that a node is; kNone for nodes of other ops.
Activation ActivationOf(const Node& node) {
  return kernels::ActivationOfOp(node.op->type);
}

// The first node that takes an activation of the linear layer's result; or -1. (ReLU has been seen
// to by FuseRelu, wherever it is the result's only reader.)
int32_t ActivationBehind(const Graph& graph, const Uses& uses, const Node& linear) {
  if (linear.op->type != "linear" ||
      kernels::ActivationIn(linear.attributes) != Activation::kNone) {
    return -1;
  }
  const auto readers = uses.ReadersOf(linear.outputs[0]);
  const auto found = std::ranges::find_if(readers, [&](int32_t reader) {
    const Activation activation = ActivationOf(graph.node(reader));
    return activation != Activation::kNone && activation != Activation::kRelu;
  });
  return found == readers.end() ? -1 : *found;
}

}  // namespace

Graph FuseActivation(const Graph& graph) {
  const Uses uses(graph);
  Rewriter rewriter(graph);
  uses.ForEachLive([&](int32_t i) {
    const Node& node = graph.node(i);
    if (rewriter.Of(node.outputs[0]).valid()) return;  // with its linear layer
    const int32_t behind = ActivationBehind(graph, uses, node);
    if (behind < 0) return rewriter.Copy(node);
    const Node& activation = graph.node(behind);
    const kernels::Attributes attributes = node.attributes.With(activation.op->type, int64_t{1});
    const std::vector<ValueId> inputs = rewriter.Of(node.inputs);
    if (uses.IsOnlyReader(behind, node.outputs[0])) {
      rewriter.Map(activation.outputs[0],
                   rewriter.to().Add("linear", attributes, inputs, 1, node.name)[0]);
      return;
    }
    const std::vector<ValueId> both =
        rewriter.to().Add("linear_activation", attributes, inputs, 2, node.name);
    rewriter.Map(activation.outputs[0], both[0]);
    rewriter.Map(node.outputs[0], both[1]);
  });
  return rewriter.Finish();
}

}  // namespace ringmaster::graph

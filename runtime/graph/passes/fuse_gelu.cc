#include <algorithm>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

// The node that takes GELU of the linear layer's result, beside others that read the result; or -1.
int32_t GeluOf(const Graph& graph, const Uses& uses, const Node& linear) {
  if (linear.op->type != "linear" || linear.attributes.Int("relu") != 0) return -1;
  const auto readers = uses.ReadersOf(linear.outputs[0]);
  const auto gelu = std::ranges::find_if(
      readers, [&](int32_t reader) { return graph.node(reader).op->type == "gelu"; });
  return gelu == readers.end() || readers.size() == 1 ? -1 : *gelu;
}

}  // namespace

Graph FuseGelu(const Graph& graph) {
  const Uses uses(graph);
  Rewriter rewriter(graph);
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    const Node& node = graph.node(i);
    if (!uses.IsLive(i) || rewriter.Of(node.outputs[0]).valid()) continue;
    const int32_t gelu = GeluOf(graph, uses, node);
    if (gelu < 0) {
      rewriter.Copy(node);
      continue;
    }
    const std::vector<ValueId> both =
        rewriter.to().Add("linear_gelu", node.attributes, rewriter.Of(node.inputs), 2, node.name);
    rewriter.Map(graph.node(gelu).outputs[0], both[0]);
    rewriter.Map(node.outputs[0], both[1]);
  }
  return rewriter.Finish();
}

}  // namespace ringmaster::graph

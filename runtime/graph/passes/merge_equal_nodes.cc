#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

// What decides the bits of a node's outputs: every op is a function of its inputs, its attributes
// and the run's context. (Two dropouts of one "random_op" draw the same mask.)
std::string KeyOf(const Node& node, std::span<const ValueId> inputs) {
  std::string key = fmt::format("{} {{{}}}", node.op->type, node.attributes.ToString());
  for (const ValueId input : inputs) key += fmt::format(" {}", input.index);
  return key;
}

}  // namespace

Graph MergeEqualNodes(const Graph& graph) {
  const Uses uses(graph);
  Rewriter rewriter(graph);
  std::unordered_map<std::string, std::vector<ValueId>> made;  // outputs, in the new graph
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!uses.IsLive(static_cast<int32_t>(i))) continue;
    const Node& node = graph.nodes()[i];
    if (uses.MakesOutput(node)) {
      rewriter.Copy(node);
      continue;
    }
    const auto [first, is_new] =
        made.try_emplace(KeyOf(node, rewriter.Of(node.inputs)), std::vector<ValueId>());
    if (is_new) {
      rewriter.Copy(node);
      first->second = rewriter.Of(node.outputs);
      continue;
    }
    for (size_t output = 0; output < node.outputs.size(); ++output)
      rewriter.Map(node.outputs[output], first->second[output]);
  }
  return rewriter.Finish();
}

}  // namespace ringmaster::graph

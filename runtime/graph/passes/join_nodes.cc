#include "runtime/graph/passes/join_nodes.h"

#include <cstddef>
#include <vector>

namespace ringmaster::graph {

Graph JoinNodes(const Graph& graph, const FindOther& find, const AddBoth& add) {
  const Uses uses(graph);
  std::vector<int32_t> others(graph.nodes().size(), kNoNode);
  std::vector<bool> is_other(graph.nodes().size());
  uses.ForEachLive([&](int32_t i) {
    const int32_t other = find(uses, i);
    if (other == kNoNode) return;
    others[static_cast<size_t>(i)] = other;
    is_other[static_cast<size_t>(other)] = true;
  });
  Rewriter rewriter(graph);
  uses.ForEachLive([&](int32_t i) {
    if (is_other[static_cast<size_t>(i)]) return;
    const int32_t other = others[static_cast<size_t>(i)];
    if (other == kNoNode) {
      rewriter.Copy(graph.node(i));
    } else {
      add(rewriter, graph.node(i), graph.node(other));
    }
  });
  return rewriter.Finish();
}

}  // namespace ringmaster::graph

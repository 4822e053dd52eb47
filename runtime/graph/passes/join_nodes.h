// JoinNodes: how a pass computes a node with one other, in one place. Internal to graph/passes/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_JOIN_NODES_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_JOIN_NODES_H_

#include <cstdint>
#include <functional>

#include "runtime/graph/graph.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {

inline constexpr int32_t kNoNode = -1;

// The index of the node that is to be computed with this one, in its place, or kNoNode. No node is
// found twice.
using FindOther = std::function<int32_t(const Uses& uses, int32_t node)>;
// Adds what computes both, and maps the outputs of both to it, as far as anybody reads them.
using AddBoth = std::function<void(Rewriter& rewriter, const Node& node, const Node& other)>;

// The graph with such nodes joined and all others as they were.
Graph JoinNodes(const Graph& graph, const FindOther& find, const AddBoth& add);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_JOIN_NODES_H_

// Recompute: less memory for more arithmetic (Chen et al.: "Training deep nets with sublinear
// memory cost", 2016). What a backward pass reads of the forward pass lies in memory all the while
// between; where that is too much, results of cheap ops are dropped and computed again next to who
// reads them. Internal to graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_

#include <cstddef>
#include <span>

#include "runtime/graph/executor.h"
#include "runtime/graph/graph.h"

namespace ringmaster::graph {

// The same graph, in which nodes "again/<name>" compute what nodes before them have computed: where
// its values take more than the options' `recompute_from`, as long as that costs little, and so
// that its values fit into an arena of the options' budget, beside the block, as far as that can
// be. Each is the one that saves most, for the bytes that it touches, where most is held, together
// with what it reads if that is gone too: never a product or attention, nor what would have to be
// held longer for it, and of convolutions only such as do little, like the first one of a network,
// which sees three channels and may make the largest image of all. They have the bits of the first
// ones: random ops draw by sample and op, not by time. `scratch` has each node's bytes of scratch
// memory, by number.
Graph Recompute(const Graph& graph, std::span<const size_t> scratch, const CompileOptions& options);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_

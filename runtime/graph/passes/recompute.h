// Recompute: less memory for more arithmetic (Chen et al.: "Training deep nets with sublinear
// memory cost", 2016). What a backward pass reads of the forward pass lies in memory all the while
// between; where that is too much, results of cheap ops are dropped and computed again next to who
// reads them. Internal to graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/graph.h"

namespace ringmaster::graph {

// The same graph, in which nodes "again/<name>" compute what nodes before them have computed: where
// its values take more than the options' `recompute_from`, as long as that costs little, and so
// that its values fit into an arena of the options' budget, beside the block. Each is the one that
// saves most, for the bytes that it touches, where most is held, together with what it reads if
// that is gone too: never a convolution, a product or attention, nor what would have to be held
// longer for it. They have the bits of the first ones: random ops draw by sample and op, not by
// time. `scratch` has each node's bytes of scratch memory, by number.
//   kResourceExhausted  there is no such graph; the message says how far it comes
absl::StatusOr<Graph> Recompute(const Graph& graph, std::span<const size_t> scratch,
                                const CompileOptions& options);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_RECOMPUTE_H_

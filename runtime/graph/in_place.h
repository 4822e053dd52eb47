// In-place reuse: a result lies where an operand lies that nobody reads afterwards, if the kernel
// may overwrite it (kernels::Primitive::MayOverwrite). Less memory is held, and less is touched.
// Internal to graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_IN_PLACE_H_
#define RINGMASTER_RUNTIME_GRAPH_IN_PLACE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace ringmaster::graph {

// `roots` (Plan::roots) with the values that may share memory joined, for these steps in their
// order. Where the result is an output of the graph, the operand lies in the output's memory from
// its own step on; else the result has the operand's root. Memory of inputs, parameters and states,
// and what an output holds already, is never overwritten.
std::vector<int32_t> ShareInPlace(const Graph& graph, std::span<const PlannedStep> steps,
                                  std::vector<int32_t> roots);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_IN_PLACE_H_

// Graphs for people: as they are built and as they will run, as text and for Graphviz
// (`dot -Tsvg FILE.dot`). ToString of graph.h is the text of a graph as it is built.
//
// Pure functions, thread-safe but for DumpPlan, which fixes the thread count.
#ifndef RINGMASTER_RUNTIME_GRAPH_DUMP_H_
#define RINGMASTER_RUNTIME_GRAPH_DUMP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/executor.h"

namespace ringmaster::graph {

struct Dump {
  std::string text;
  std::string dot;
};

// How texts refer to a value: by its name when it comes from outside, else by its number: "%4".
std::string Reference(const Graph& graph, ValueId id);

// Nodes as boxes, those of the backward pass in another colour; what comes from outside and the
// outputs as ellipses; edges with type and shape.
std::string ToDot(const Graph& graph);

struct PassDump {
  std::string pass;  // its name in passes/passes.h, or "Recompute"
  Dump made;
};

// What Executor::Compile makes of the graph: how many steps do nothing but reorder images from one
// layout to another, and which; which do so before or behind what they are for; and the steps in
// the order in which they run, each with its kernel and with the places of its results and its
// scratch memory in the arena, in bytes:
//   arena: 12,288 bytes, 24,576 without reuse
//   reorders of images: 1 of 14 steps, 32,768 bytes written
//       3 reorder/images: f32[4, 8, 16, 16] to f32[4, 8, 16, 16] in blocks of 8
//   reorders of images within other steps: none
//   0 fc: linear by onednn/brg:avx512_core
//       %4 f32[32, 64] at 0 (8,192 bytes)
// "at 0 of the outputs' block" where it lies there.
// `passes`, unless null, gets what the graph is after each pass, in their order, also where the
// plan then fails. Errors are Compile's; nothing is allocated.
absl::StatusOr<Dump> DumpPlan(const Graph& graph, const CompileOptions& options,
                              std::vector<PassDump>* passes = nullptr);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_DUMP_H_

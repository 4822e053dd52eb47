// The executor's plan: what the passes make of a graph, which of its nodes run, by which kernels,
// and where their results lie. Internal to graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PLAN_H_
#define RINGMASTER_RUNTIME_GRAPH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/arena.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/kernels/kernel.h"

namespace ringmaster::graph {

// A place in the arena, or in the block of outputs.
struct Place {
  size_t offset = 0;
  bool in_block = false;
};

struct PlannedStep {
  int32_t node = -1;
  std::unique_ptr<kernels::Primitive> primitive;
  Place scratch;
};

struct Plan {
  // What is run: the graph that was planned, after the passes.
  Graph graph;
  OutputBlock block;
  std::vector<PlannedStep> steps;
  // By value: the value whose memory it uses. Itself, unless an alias op made it, it is written in
  // place, or it lies where an output will that is made of it in place (in_place.h).
  std::vector<int32_t> roots;
  // By value: where it lies, for computed roots that are no outputs.
  std::vector<Place> places;
  ArenaPlan arena;
  size_t bytes_without_reuse = 0;
  // How many sample positions a run needs; 0 when no node draws random numbers.
  int64_t samples = 0;
};

// Fixes the process's thread count, on which the choice of kernels may depend. Errors as
// Executor::Compile has them. `observer`, which may be empty, is told of each pass; of Recompute,
// the last, where memory is to be saved and that saves some.
absl::StatusOr<Plan> MakePlan(const Graph& graph, const CompileOptions& options,
                              const PassObserver& observer = {});

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PLAN_H_

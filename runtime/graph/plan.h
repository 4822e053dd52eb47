// The executor's plan: which nodes run, by which kernels, and where their results lie. Internal to
// graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PLAN_H_
#define RINGMASTER_RUNTIME_GRAPH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/arena.h"
#include "runtime/graph/graph.h"
#include "runtime/kernels/kernel.h"

namespace ringmaster::graph {

struct PlannedStep {
  int32_t node = -1;
  std::unique_ptr<kernels::Primitive> primitive;
  size_t scratch_offset = 0;
};

struct Plan {
  std::vector<PlannedStep> steps;
  // By value: the value whose memory it uses (itself, unless an alias op made it).
  std::vector<int32_t> roots;
  // By value: its offset in the arena, for computed roots that are no outputs.
  std::vector<size_t> offsets;
  ArenaPlan arena;
  size_t bytes_without_reuse = 0;
  // How many sample positions a run needs; 0 when no node draws random numbers.
  int64_t samples = 0;
};

// Errors as Executor::Compile has them.
absl::StatusOr<Plan> MakePlan(const Graph& graph, kernels::Selection selection, bool reuse_memory);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PLAN_H_

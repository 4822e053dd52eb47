#include "runtime/graph/requirements.h"

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/graph/plan.h"

namespace ringmaster::graph {

absl::StatusOr<Requirements> RequirementsOf(const Graph& graph, const CompileOptions& options) {
  RM_ASSIGN_OR_RETURN(const Plan plan, MakePlan(graph, options));
  Requirements result{.arena_bytes = plan.arena.bytes};
  for (const NamedValue& output : plan.graph.outputs()) {
    if (!plan.block.offsets.contains(output.name))
      result.output_bytes += plan.graph.spec(output.value).bytes();
  }
  for (const PlannedStep& step : plan.steps) {
    const Node& node = plan.graph.node(step.node);
    result.implementation_names.push_back(fmt::format("{}: {}", node.name, step.primitive->name()));
    result.reordered_bytes += step.primitive->reordered_bytes();
    for (const ValueId output : node.outputs) {
      const size_t bytes = plan.graph.spec(output).bytes();
      if (bytes <= result.largest_bytes) continue;
      result.largest_bytes = bytes;
      result.largest = fmt::format("{} ({})", node.name, plan.graph.spec(output).ToString());
    }
  }
  return result;
}

}  // namespace ringmaster::graph

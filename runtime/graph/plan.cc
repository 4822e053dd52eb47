#include "runtime/graph/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {
namespace {

// By node: whether an output depends on it.
std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size(), false);
  const auto mark = [&](ValueId id) {
    if (const int32_t producer = graph.value(id).producer; producer >= 0)
      live[static_cast<size_t>(producer)] = true;
  };
  for (const NamedValue& output : graph.outputs()) mark(output.value);
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) mark(input);
  }
  return live;
}

std::vector<int32_t> Roots(const Graph& graph) {
  std::vector<int32_t> roots(graph.values().size());
  for (size_t i = 0; i < roots.size(); ++i) {
    const int32_t producer = graph.values()[i].producer;
    const bool alias = producer >= 0 && graph.node(producer).op->alias;
    // An input comes before its node's outputs, so its root is known.
    roots[i] = alias ? roots[static_cast<size_t>(graph.node(producer).inputs[0].index)]
                     : static_cast<int32_t>(i);
  }
  return roots;
}

std::vector<ValueSpec> SpecsOf(const Graph& graph, std::span<const ValueId> ids) {
  std::vector<ValueSpec> specs;
  for (const ValueId id : ids) specs.push_back(graph.spec(id));
  return specs;
}

absl::StatusOr<std::unique_ptr<kernels::Primitive>> PrepareNode(const Graph& graph,
                                                                const Node& node,
                                                                kernels::Selection selection) {
  const std::vector<ValueSpec> inputs = SpecsOf(graph, node.inputs),
                               outputs = SpecsOf(graph, node.outputs);
  auto primitive = kernels::Prepare({node.op->type, node.attributes, inputs, outputs}, selection);
  if (primitive != nullptr) return primitive;
  std::string specs;
  for (const ValueSpec& spec : inputs) specs += (specs.empty() ? "" : ", ") + spec.ToString();
  return absl::UnimplementedError(
      fmt::format("{} ({}): no kernel takes inputs {}", node.name, node.op->type, specs));
}

absl::Status NoteSamples(const Graph& graph, const Node& node, int64_t* samples) {
  if (!node.op->random) return absl::OkStatus();
  const int64_t batch = graph.shape(node.inputs[0]).dim(0);
  if (*samples != 0 && *samples != batch) {
    return absl::InvalidArgumentError(fmt::format(
        "{} ({}) draws for {} samples, an earlier op for {}: the first axis must be the batch",
        node.name, node.op->type, batch, *samples));
  }
  *samples = batch;
  return absl::OkStatus();
}

// Collects lifetimes of values and of scratch memory, then places them all in one arena.
class MemoryPlanner {
 public:
  MemoryPlanner(const Graph& graph, Plan& plan)
      : graph_(graph), plan_(plan), life_of_(graph.values().size(), -1) {
    for (const NamedValue& output : graph.outputs()) outputs_.push_back(output.value.index);
  }

  void Place(bool reuse) {
    for (size_t step = 0; step < plan_.steps.size(); ++step) AddStep(static_cast<int32_t>(step));
    plan_.arena = PlanArena(lives_, reuse);
    plan_.bytes_without_reuse = PlanArena(lives_, false).bytes;
    plan_.offsets.assign(life_of_.size(), 0);
    for (size_t v = 0; v < life_of_.size(); ++v) {
      if (life_of_[v] >= 0)
        plan_.offsets[v] = plan_.arena.offsets[static_cast<size_t>(life_of_[v])];
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      plan_.steps[s].scratch_offset = plan_.arena.offsets[scratch_life_[s]];
    }
  }

 private:
  void AddStep(int32_t step) {
    const PlannedStep& planned = plan_.steps[static_cast<size_t>(step)];
    const Node& node = graph_.node(planned.node);
    for (const ValueId input : node.inputs) {
      const int32_t life =
          life_of_[static_cast<size_t>(plan_.roots[static_cast<size_t>(input.index)])];
      if (life >= 0) lives_[static_cast<size_t>(life)].last = step;
    }
    for (const ValueId output : node.outputs) {
      if (std::ranges::find(outputs_, output.index) != outputs_.end()) continue;
      life_of_[static_cast<size_t>(output.index)] = static_cast<int32_t>(lives_.size());
      lives_.push_back({graph_.spec(output).bytes(), step, step});
    }
    scratch_life_.push_back(lives_.size());
    lives_.push_back({planned.primitive->scratch_bytes(), step, step});
  }

  const Graph& graph_;
  Plan& plan_;
  std::vector<int32_t> outputs_;
  std::vector<int32_t> life_of_;  // by value: index into lives_, or -1 when it is not in the arena
  std::vector<Lifetime> lives_;
  std::vector<size_t> scratch_life_;  // by step
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const Graph& graph, kernels::Selection selection, bool reuse_memory) {
  if (graph.outputs().empty())
    return absl::InvalidArgumentError("the graph has no outputs: nothing to run");
  Plan plan;
  plan.roots = Roots(graph);
  const std::vector<bool> live = LiveNodes(graph);
  for (size_t i = 0; i < live.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!live[i] || node.op->alias) continue;
    RM_RETURN_IF_ERROR(NoteSamples(graph, node, &plan.samples));
    RM_ASSIGN_OR_RETURN(auto primitive, PrepareNode(graph, node, selection));
    plan.steps.push_back({.node = static_cast<int32_t>(i), .primitive = std::move(primitive)});
  }
  MemoryPlanner(graph, plan).Place(reuse_memory);
  return plan;
}

}  // namespace ringmaster::graph

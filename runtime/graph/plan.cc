#include "runtime/graph/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/memory.h"
#include "runtime/device/threads.h"
#include "runtime/graph/in_place.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/recompute.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

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

absl::StatusOr<std::unique_ptr<kernels::Primitive>> PrepareNode(const Graph& graph,
                                                                const Node& node,
                                                                kernels::Selection selection) {
  const std::vector<ValueSpec> inputs = graph.specs(node.inputs),
                               outputs = graph.specs(node.outputs);
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
    return absl::InvalidArgumentError(
        fmt::format("{} ({}) draws for {}, an earlier op for {}: the first axis must be the batch",
                    node.name, node.op->type, WithNoun(batch, "sample"), *samples));
  }
  *samples = batch;
  return absl::OkStatus();
}

absl::Status CheckBlock(const Graph& graph, const OutputBlock& block) {
  const auto misfit = [](const std::string& name) {
    return absl::InvalidArgumentError(
        fmt::format("the block of outputs: \"{}\" is no output, or does not fit into it", name));
  };
  std::map<std::string_view, size_t> sizes;
  for (const NamedValue& output : graph.outputs())
    sizes.emplace(output.name, device::AlignUp(graph.spec(output.value).bytes()));
  std::map<size_t, size_t> ends;  // by where one begins
  for (const auto& [name, offset] : block.offsets) {
    const auto size = sizes.find(name);
    if (size == sizes.end() || !ends.emplace(offset, offset + size->second).second)
      return misfit(name);
  }
  for (const auto& [name, offset] : block.offsets) {
    const auto here = ends.find(offset), next = std::next(here);
    const size_t limit = next == ends.end() ? block.bytes : next->first;
    if (device::AlignUp(offset) != offset || here->second > limit) return misfit(name);
  }
  return absl::OkStatus();
}

// Lifetimes of values and of scratch memory, where values of one root share memory.
class Lifetimes {
 public:
  Lifetimes(const Plan& plan, const std::vector<int32_t>& roots)
      : graph_(plan.graph),
        steps_(plan.steps),
        roots_(roots),
        life_of_(roots.size(), -1),
        block_{.bytes = plan.block.bytes} {
    for (const NamedValue& output : graph_.outputs()) outputs_.emplace(output.value.index, end());
    for (size_t step = 0; step < steps_.size(); ++step) AddStep(static_cast<int32_t>(step));
    AddTenants(plan.block);
  }

  ArenaPlan PlaceAll(bool reuse) const { return PlanArena(lives_, reuse, block_); }

  // Notes in the plan where everything lies then.
  void Note(ArenaPlan arena, Plan* plan) const {
    const auto place_of = [&](size_t life) {
      return Place{.offset = arena.offsets[life], .in_block = arena.in_block[life]};
    };
    plan->roots = roots_;
    plan->places.assign(life_of_.size(), {});
    for (size_t v = 0; v < life_of_.size(); ++v) {
      if (life_of_[v] >= 0) plan->places[v] = place_of(static_cast<size_t>(life_of_[v]));
    }
    for (size_t s = 0; s < steps_.size(); ++s) plan->steps[s].scratch = place_of(scratch_life_[s]);
    plan->arena = std::move(arena);
  }

 private:
  int32_t RootOf(ValueId value) const { return roots_[static_cast<size_t>(value.index)]; }
  int32_t end() const { return static_cast<int32_t>(steps_.size()); }

  // An output keeps its place from when something is first written there.
  void AddTenants(const OutputBlock& block) {
    for (const NamedValue& output : graph_.outputs()) {
      const auto place = block.offsets.find(output.name);
      if (place == block.offsets.end()) continue;
      block_.tenants.push_back({.offset = place->second,
                                .life = {.bytes = graph_.spec(output.value).bytes(),
                                         .first = outputs_.at(output.value.index),
                                         .last = end()}});
    }
  }

  void AddStep(int32_t step) {
    const PlannedStep& planned = steps_[static_cast<size_t>(step)];
    const Node& node = graph_.node(planned.node);
    for (const ValueId input : node.inputs) {
      const int32_t life = life_of_[static_cast<size_t>(RootOf(input))];
      if (life >= 0) lives_[static_cast<size_t>(life)].last = step;
    }
    for (const ValueId output : node.outputs) {
      const int32_t root = RootOf(output);
      if (const auto written = outputs_.find(root); written != outputs_.end()) {
        written->second = std::min(written->second, step);
        continue;
      }
      // What is written in place lives on where it was.
      if (root != output.index) continue;
      life_of_[static_cast<size_t>(root)] = static_cast<int32_t>(lives_.size());
      lives_.push_back({graph_.spec(output).bytes(), step, step});
    }
    scratch_life_.push_back(lives_.size());
    lives_.push_back({planned.primitive->scratch_bytes(), step, step});
  }

  const Graph& graph_;
  const std::vector<PlannedStep>& steps_;
  const std::vector<int32_t> roots_;
  std::map<int32_t, int32_t> outputs_;  // by value: the first step that writes where it lies
  std::vector<int32_t> life_of_;  // by value: index into lives_, or -1 when it is not in the arena
  std::vector<Lifetime> lives_;
  std::vector<size_t> scratch_life_;  // by step
  Block block_;
};

// Places all values in one arena. What lives longer for having been joined may leave gaps, so both
// ways are tried.
void PlaceValues(bool reuse, Plan* plan) {
  const std::vector<int32_t> roots = Roots(plan->graph);
  const Lifetimes apart(*plan, roots);
  ArenaPlan arena = apart.PlaceAll(/*reuse=*/false);
  plan->bytes_without_reuse = arena.bytes;
  if (!reuse) return apart.Note(std::move(arena), plan);
  arena = apart.PlaceAll(/*reuse=*/true);
  const Lifetimes joined(*plan, ShareInPlace(plan->graph, plan->steps, roots));
  ArenaPlan in_place = joined.PlaceAll(/*reuse=*/true);
  if (in_place.bytes <= arena.bytes) return joined.Note(std::move(in_place), plan);
  apart.Note(std::move(arena), plan);
}

// Primitives that a plan before this one has prepared, by the names of their nodes.
using Prepared = std::map<std::string, std::unique_ptr<kernels::Primitive>, std::less<>>;

absl::StatusOr<Plan> PlanOf(Graph graph, const CompileOptions& options, Prepared prepared) {
  RM_RETURN_IF_ERROR(graph.status());
  RM_RETURN_IF_ERROR(CheckBlock(graph, options.block));
  Plan plan{.graph = std::move(graph), .block = options.block};
  const Uses uses(plan.graph);
  for (size_t i = 0; i < plan.graph.nodes().size(); ++i) {
    const Node& node = plan.graph.nodes()[i];
    if (!uses.IsLive(static_cast<int32_t>(i)) || node.op->alias) continue;
    RM_RETURN_IF_ERROR(NoteSamples(plan.graph, node, &plan.samples));
    PlannedStep& step = plan.steps.emplace_back(PlannedStep{.node = static_cast<int32_t>(i)});
    if (const auto found = prepared.find(node.name); found != prepared.end()) {
      step.primitive = std::move(found->second);
      continue;
    }
    RM_ASSIGN_OR_RETURN(step.primitive, PrepareNode(plan.graph, node, options.kernels));
  }
  PlaceValues(options.reuse_memory, &plan);
  return plan;
}

// The plan of the same with less memory, or of the same again where that takes no less.
// kResourceExhausted where neither fits into the budget.
absl::StatusOr<Plan> WithLess(Plan plan, const CompileOptions& options,
                              const PassObserver& observer) {
  std::vector<size_t> scratch(plan.graph.nodes().size(), 0);
  Prepared prepared;
  for (PlannedStep& step : plan.steps) {
    scratch[static_cast<size_t>(step.node)] = step.primitive->scratch_bytes();
    prepared.emplace(plan.graph.node(step.node).name, std::move(step.primitive));
  }
  const size_t before = plan.arena.bytes, budget = options.memory_budget;
  CompileOptions asked = options;
  if (before <= budget) asked.memory_budget = 0;  // it fits: only what costs little
  RM_ASSIGN_OR_RETURN(Plan less,
                      PlanOf(Recompute(plan.graph, scratch, asked), options, std::move(prepared)));
  if (asked.memory_budget == 0 && less.arena.bytes > before)
    return PlanOf(std::move(plan.graph), options, {});
  if (observer && less.arena.bytes < before) observer("Recompute", less.graph);
  if (budget == 0 || less.arena.bytes <= budget) return less;
  const auto bytes = [](size_t count) { return WithCommas(static_cast<int64_t>(count)); };
  return absl::ResourceExhaustedError(fmt::format(
      "a step's values take {} bytes, {} where what is cheap is computed again; the budget is {}",
      bytes(before), bytes(less.arena.bytes), bytes(budget)));
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const Graph& original, const CompileOptions& options,
                              const PassObserver& observer) {
  RM_RETURN_IF_ERROR(original.status());
  if (original.outputs().empty())
    return absl::InvalidArgumentError("the graph has no outputs: nothing to run");
  device::AdoptThreadCount();
  RM_ASSIGN_OR_RETURN(Plan plan, PlanOf(Optimise(original, options, observer), options, {}));
  const bool fits = options.memory_budget == 0 || plan.arena.bytes <= options.memory_budget;
  if (fits && plan.arena.bytes <= options.recompute_from) return plan;
  return WithLess(std::move(plan), options, observer);
}

}  // namespace ringmaster::graph

#include "runtime/graph/autodiff.h"

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

// One differentiation: which values need a gradient, and what has flowed into each so far.
class Backward {
 public:
  Backward(Graph& graph, std::span<const ValueId> wrt);

  absl::Status Run(ValueId loss);
  ValueId GradientOf(ValueId value);

 private:
  bool Needed(ValueId value) const { return needed_[static_cast<size_t>(value.index)]; }
  ValueId& Flow(ValueId value) { return flow_[static_cast<size_t>(value.index)]; }
  absl::Status Visit(int32_t index);
  void Accumulate(ValueId value, ValueId gradient);

  Graph& graph_;
  std::vector<bool> needed_;   // by value: whether it depends on something in `wrt`
  std::vector<ValueId> flow_;  // by value: the sum of the gradients that reached it
};

Backward::Backward(Graph& graph, std::span<const ValueId> wrt)
    : graph_(graph), needed_(graph.values().size(), false), flow_(graph.values().size()) {
  for (const ValueId id : wrt) needed_[static_cast<size_t>(id.index)] = true;
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      if (Needed(input)) needed_[static_cast<size_t>(node.outputs[0].index)] = true;
    }
  }
}

absl::Status Backward::Run(ValueId loss) {
  Flow(loss) = Constant(graph_, 1.0, graph_.spec(loss), "grad/seed");
  for (auto index = static_cast<int32_t>(graph_.value(loss).producer); index >= 0; --index) {
    RM_RETURN_IF_ERROR(Visit(index));
  }
  return graph_.status();
}

absl::Status Backward::Visit(int32_t index) {
  const Node& node = graph_.node(index);
  std::vector<ValueId> output_gradients;
  for (const ValueId output : node.outputs) output_gradients.push_back(Flow(output));
  std::vector<bool> needed;
  bool wanted = false;
  for (const ValueId input : node.inputs) {
    needed.push_back(Needed(input));
    wanted = wanted || Needed(input);
  }
  if (!output_gradients[0].valid() || !wanted) return absl::OkStatus();
  if (node.op->gradient == nullptr) {
    return absl::UnimplementedError(
        fmt::format("{} ({}) has no gradient", node.name, node.op->type));
  }
  GradientContext context(graph_, node, std::move(output_gradients), std::move(needed));
  node.op->gradient(context);
  for (int i = 0; i < context.input_count(); ++i) {
    if (context.Needs(i)) Accumulate(context.input(i), context.gradient(i));
  }
  return graph_.status();
}

void Backward::Accumulate(ValueId value, ValueId gradient) {
  if (!gradient.valid()) return;
  ValueId& flow = Flow(value);
  flow = flow.valid() ? Add(graph_, flow, gradient) : gradient;
}

ValueId Backward::GradientOf(ValueId value) {
  const ValueId flow = Flow(value);
  return flow.valid() ? flow : Constant(graph_, 0.0, graph_.spec(value), "grad/zero");
}

}  // namespace

absl::StatusOr<std::vector<ValueId>> Differentiate(Graph& graph, ValueId loss,
                                                   std::span<const ValueId> wrt) {
  RM_RETURN_IF_ERROR(graph.status());
  for (const ValueId id : wrt) {
    if (!id.valid())
      return absl::InvalidArgumentError("a value to differentiate by does not exist");
  }
  if (!loss.valid() || graph.spec(loss).shape.rank() != 0 ||
      graph.spec(loss).dtype == DType::kI32) {
    return absl::InvalidArgumentError(
        fmt::format("the loss must be a real scalar, got {}",
                    loss.valid() ? graph.spec(loss).ToString() : std::string("no value")));
  }
  Backward backward(graph, wrt);
  RM_RETURN_IF_ERROR(backward.Run(loss));
  std::vector<ValueId> gradients;
  for (const ValueId id : wrt) gradients.push_back(backward.GradientOf(id));
  RM_RETURN_IF_ERROR(graph.status());
  return gradients;
}

}  // namespace ringmaster::graph

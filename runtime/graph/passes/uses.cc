#include "runtime/graph/passes/uses.h"

#include <algorithm>

#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {

Uses::Uses(const Graph& graph)
    : live_(graph.nodes().size(), false),
      readers_(graph.values().size()),
      is_output_(graph.values().size(), false) {
  const auto mark = [&](ValueId id) {
    if (const int32_t producer = graph.value(id).producer; producer >= 0)
      live_[static_cast<size_t>(producer)] = true;
  };
  for (const NamedValue& output : graph.outputs()) {
    mark(output.value);
    is_output_[static_cast<size_t>(output.value.index)] = true;
  }
  for (size_t i = live_.size(); i-- > 0;) {
    if (!live_[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) mark(input);
  }
  for (size_t i = 0; i < live_.size(); ++i) {
    if (!live_[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs)
      readers_[static_cast<size_t>(input.index)].push_back(static_cast<int32_t>(i));
  }
}

bool Uses::IsOnlyReader(int32_t node, ValueId value) const {
  return OnlyReaderOf(value) == node;
}

int32_t Uses::OnlyReaderOf(ValueId value) const {
  const auto readers = ReadersOf(value);
  return readers.size() == 1 && !IsOutput(value) ? readers[0] : -1;
}

bool Uses::MakesOutput(const Node& node) const {
  return std::ranges::any_of(node.outputs,
                             [&](ValueId id) { return is_output_[static_cast<size_t>(id.index)]; });
}

int32_t Uses::MaxPoolGradOf(const Graph& graph, int32_t pool) const {
  const Node& node = graph.node(pool);
  if (node.op->type != "max_pool2d" || MakesOutput(node)) return -1;
  const ValueId image = node.inputs[0];
  const auto readers = ReadersOf(image);
  if (readers.size() != 2 || readers[0] != pool || IsOutput(image)) return -1;
  const Node& grad = graph.node(readers[1]);
  const bool is_its = grad.op->type == "max_pool2d_grad" && grad.inputs[0] == image &&
                      grad.attributes.ToString() == node.attributes.ToString();
  return is_its && !MakesOutput(grad) ? readers[1] : -1;
}

}  // namespace ringmaster::graph

#include "runtime/graph/passes/rewriter.h"

#include <utility>

#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {

Rewriter::Rewriter(const Graph& from) : from_(from), images_(from.values().size()) {
  for (size_t i = 0; i < images_.size(); ++i) {
    const Value& value = from.values()[i];
    const Shape& shape = value.spec.shape;
    switch (value.kind) {
      case ValueKind::kInput:
        images_[i] = to_.Input(value.name, shape, value.spec.dtype);
        break;
      case ValueKind::kParameter:
        images_[i] = to_.Parameter(value.name, shape, value.spec.dtype);
        break;
      case ValueKind::kState:
        images_[i] = to_.State(value.name, shape, value.spec.dtype);
        break;
      case ValueKind::kComputed:
        break;
    }
  }
}

std::vector<ValueId> Rewriter::Of(std::span<const ValueId> old) const {
  std::vector<ValueId> now;
  for (const ValueId id : old) now.push_back(Of(id));
  return now;
}

void Rewriter::Add(const Node& node, const Attributes& attributes,
                   std::span<const ValueId> inputs) {
  const std::vector<ValueId> outputs =
      to_.Add(node.op->type, attributes, inputs, node.op->output_count, node.name);
  for (size_t i = 0; i < outputs.size(); ++i) Map(node.outputs[i], outputs[i]);
}

Graph Rewriter::Finish() {
  for (const NamedValue& output : from_.outputs()) to_.MarkOutput(output.name, Of(output.value));
  return std::move(to_);
}

}  // namespace ringmaster::graph

#include "runtime/graph/graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/graph/dump.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {
namespace {

std::string_view KindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kParameter:
      return "parameter";
    case ValueKind::kState:
      return "state";
    case ValueKind::kComputed:
      break;
  }
  return "computed";
}

// Past this a value fits no machine that we know of; below it no sum or product of sizes overflows.
constexpr int64_t kMaxElements = int64_t{1} << 40;

// What is wrong with a value of this shape, whatever makes it; empty for nothing.
std::string ProblemOf(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape.dims()) {
    if (extent < 1) return "every extent must be at least 1";
    if (extent > kMaxElements / elements) {
      return fmt::format("too large: a value has at most {} elements", kMaxElements);
    }
    elements *= extent;
  }
  return "";
}

std::string ProblemOf(const ValueSpec& spec) {
  if (std::string problem = ProblemOf(spec.shape); !problem.empty()) return problem;
  if (spec.layout == Layout::kRowMajor) return "";
  if (spec.shape.rank() == 4 && spec.shape.dim(1) % static_cast<int64_t>(spec.layout) == 0)
    return "";
  return "only channels of [N, C, H, W] lie in blocks, and in whole ones";
}

std::string SpecsToText(std::span<const ValueSpec> specs) {
  std::string text;
  for (const ValueSpec& spec : specs) text += (text.empty() ? "" : ", ") + spec.ToString();
  return text;
}

std::string NodeToText(const Graph& graph, const Node& node) {
  std::string outputs, inputs, specs;
  for (const ValueId id : node.outputs) {
    outputs += (outputs.empty() ? "" : ", ") + Reference(graph, id);
    specs += (specs.empty() ? "" : ", ") + graph.spec(id).ToString();
  }
  for (const ValueId id : node.inputs)
    inputs += (inputs.empty() ? "" : ", ") + Reference(graph, id);
  std::string attributes = node.attributes.ToString();
  if (!attributes.empty()) attributes = " {" + attributes + "}";
  return fmt::format("{} = {}: {}({}){} -> {}\n", outputs, node.name, node.op->type, inputs,
                     attributes, specs);
}

}  // namespace

std::string Reference(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return value.kind == ValueKind::kComputed ? fmt::format("%{}", id.index) : value.name;
}

ValueId Graph::Input(std::string_view name, const Shape& shape, DType dtype) {
  return Declare(name, shape, dtype, ValueKind::kInput);
}

ValueId Graph::Parameter(std::string_view name, const Shape& shape, DType dtype) {
  return Declare(name, shape, dtype, ValueKind::kParameter);
}

ValueId Graph::State(std::string_view name, const Shape& shape, DType dtype) {
  return Declare(name, shape, dtype, ValueKind::kState);
}

ValueId Graph::Declare(std::string_view name, const Shape& shape, DType dtype, ValueKind kind) {
  const auto what = fmt::format("{} \"{}\"", KindName(kind), name);
  if (name.empty()) {
    Fail(absl::InvalidArgumentError(what + " needs a name"));
    return {};
  }
  if (const std::string problem = ProblemOf(shape); !problem.empty()) {
    Fail(
        absl::InvalidArgumentError(fmt::format("{}: {}, got {}", what, problem, shape.ToString())));
    return {};
  }
  if (!names_.emplace(name).second) {
    Fail(absl::InvalidArgumentError(what + ": the name is used twice"));
    return {};
  }
  return NewValue(std::string(name), {shape, dtype}, kind, -1);
}

ValueId Graph::NewValue(std::string name, const ValueSpec& spec, ValueKind kind, int32_t producer) {
  values_.push_back({std::move(name), spec, kind, producer});
  return {static_cast<int32_t>(values_.size()) - 1};
}

std::string Graph::UniqueNodeName(std::string_view op, std::string_view wanted) {
  std::string name(wanted);
  if (name.empty()) name = fmt::format("{}_{}", op, nodes_.size());
  const std::string base = name;
  for (int i = 2; !node_names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

std::vector<ValueId> Graph::Add(std::string_view op, Attributes attributes,
                                std::span<const ValueId> inputs, int output_count,
                                std::string_view name) {
  std::vector<ValueId> none(static_cast<size_t>(output_count));
  if (!status_.ok()) return none;
  Node node;
  node.op = FindOp(op);
  if (node.op == nullptr || node.op->output_count != output_count) {
    Fail(absl::InternalError(fmt::format("no op \"{}\" with {} outputs", op, output_count)));
    return none;
  }
  node.name = UniqueNodeName(op, name);
  node.attributes = std::move(attributes);
  node.inputs.assign(inputs.begin(), inputs.end());
  const std::string where = fmt::format("{} ({})", node.name, op);
  std::vector<ValueId> outputs;
  if (const absl::Status status = TryAdd(std::move(node), &outputs); !status.ok()) {
    Fail(Annotate(status, where));
    return none;
  }
  return outputs;
}

absl::Status Graph::TryAdd(Node node, std::vector<ValueId>* outputs) {
  std::vector<ValueSpec> inputs;
  for (const ValueId id : node.inputs) {
    if (!id.valid() || static_cast<size_t>(id.index) >= values_.size()) {
      return absl::InvalidArgumentError(
          fmt::format("input {} is not a value of this graph", inputs.size()));
    }
    inputs.push_back(spec(id));
  }
  auto specs = node.op->infer({node.attributes, inputs});
  if (!specs.ok()) {
    return absl::Status(
        specs.status().code(),
        fmt::format("{}; inputs: {}", Message(specs.status()), SpecsToText(inputs)));
  }
  specs->front().layout = static_cast<Layout>(node.attributes.Int(kLayoutAttribute));
  for (const ValueSpec& spec : *specs) {
    if (const std::string problem = ProblemOf(spec); !problem.empty()) {
      return absl::InvalidArgumentError(fmt::format("the result would be {}: {}; inputs: {}",
                                                    spec.ToString(), problem, SpecsToText(inputs)));
    }
  }
  const auto index = static_cast<int32_t>(nodes_.size());
  for (const ValueSpec& spec : *specs) {
    outputs->push_back(NewValue(fmt::format("{}:{}", node.name, outputs->size()), spec,
                                ValueKind::kComputed, index));
  }
  node.outputs = *outputs;
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

ValueId Graph::AddOne(std::string_view op, Attributes attributes,
                      std::initializer_list<ValueId> inputs, std::string_view name) {
  return Add(op, std::move(attributes), {inputs.begin(), inputs.size()}, 1, name)[0];
}

bool Graph::IsOutput(ValueId id) const {
  return std::ranges::any_of(outputs_, [&](const NamedValue& o) { return o.value == id; });
}

void Graph::MarkOutput(std::string_view name, ValueId value) {
  if (!status_.ok()) return;
  if (!value.valid())
    return Fail(absl::InvalidArgumentError(fmt::format("output \"{}\" has no value", name)));
  if (std::ranges::any_of(outputs_, [&](const NamedValue& o) { return o.name == name; })) {
    return Fail(absl::InvalidArgumentError(fmt::format("output \"{}\" is marked twice", name)));
  }
  const int32_t producer = this->value(value).producer;
  if (producer < 0 || node(producer).op->alias || IsOutput(value)) {
    value = AddOne("copy", {}, {value}, fmt::format("output/{}", name));
  }
  outputs_.push_back({std::string(name), value});
}

void Graph::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

std::vector<ValueSpec> Graph::specs(std::span<const ValueId> ids) const {
  std::vector<ValueSpec> specs;
  specs.reserve(ids.size());
  for (const ValueId id : ids) specs.push_back(spec(id));
  return specs;
}

std::vector<ValueId> Graph::OfKind(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].kind == kind) ids.push_back({static_cast<int32_t>(i)});
  }
  return ids;
}

ValueId Graph::Find(std::string_view name) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].kind != ValueKind::kComputed && values_[i].name == name)
      return {static_cast<int32_t>(i)};
  }
  return {};
}

std::string ToString(const Graph& graph) {
  std::string text;
  for (const Value& value : graph.values()) {
    if (value.kind == ValueKind::kComputed) continue;
    text += fmt::format("{} {}: {}\n", KindName(value.kind), value.name, value.spec.ToString());
  }
  for (const Node& node : graph.nodes()) text += NodeToText(graph, node);
  for (const NamedValue& output : graph.outputs()) {
    text += fmt::format("output {} = {}\n", output.name, Reference(graph, output.value));
  }
  return text;
}

}  // namespace ringmaster::graph

// Graph: a static computation, with every shape and type known.
//
// A model is written with the builder functions of graph/ops.h, made into a training step by
// graph/autodiff.h, and run by graph/executor.h. Nodes are kept in the order in which they were
// added, which is a topological order.
//
// Errors stick, as in XLA's XlaBuilder: the first mistake (a shape that does not fit, a name used
// twice) is kept in status(), the call returns an invalid ValueId, and calls that are given an
// invalid ValueId do nothing. So a model reads as a formula, and whoever compiles or differentiates
// the graph gets the error, which names the node and the shapes.
//
//   Graph g;
//   ValueId x = g.Input("images", {32, 1, 8, 8}, DType::kF32);
//   ValueId w = g.Parameter("fc.weight", {10, 64}, DType::kF32);
//   ValueId b = g.Parameter("fc.bias", {10}, DType::kF32);
//   ValueId logits = Linear(g, Flatten(g, x), w, b);
//   g.MarkOutput("logits", logits);
//
// A value type: copies are independent and keep the ids. Not thread-safe.
#ifndef RINGMASTER_RUNTIME_GRAPH_GRAPH_H_
#define RINGMASTER_RUNTIME_GRAPH_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "runtime/kernels/attributes.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::graph {

using kernels::Attributes;
using tensor::DType;
using tensor::Layout;
using tensor::Shape;
using tensor::ValueSpec;

struct OpDefinition;

// A node's attribute that says how its first output lies in memory: a tensor::Layout as an integer.
// Absent: row-major, as all other outputs are
// whose op does not say otherwise. Models leave it to passes/choose_layouts.cc.
inline constexpr std::string_view kLayoutAttribute = "layout";

// Names a value of one graph. Default-constructed: no value.
struct ValueId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  bool operator==(const ValueId&) const = default;
};

enum class ValueKind : uint8_t {
  kInput,      // given anew for each run: images, labels
  kParameter,  // trained; read by the graph, changed only by the optimizer at commit
  kState,      // lasts but is not trained (batch norm's running statistics); changed only at commit
  kComputed,   // made by a node
};

struct Value {
  std::string name;  // unique among inputs, parameters and states; "node:0" for computed ones
  ValueSpec spec;
  ValueKind kind = ValueKind::kComputed;
  int32_t producer = -1;  // the node's index, for computed values
};

struct Node {
  std::string name;                  // unique
  const OpDefinition* op = nullptr;  // graph/op_definition.h
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

struct NamedValue {
  std::string name;
  ValueId value;
};

class Graph {
 public:
  // Values from outside. The name must be new and not empty; extents must be at least 1, and their
  // product at most 2^40, as of every value.
  ValueId Input(std::string_view name, const Shape& shape, DType dtype);
  ValueId Parameter(std::string_view name, const Shape& shape, DType dtype);
  ValueId State(std::string_view name, const Shape& shape, DType dtype);

  // Adds a node and returns its outputs, or as many invalid ids as `output_count` says after an
  // error. An empty name becomes "<op>_<number>"; a name in use gets "_<number>" appended. Models
  // use the functions of graph/ops.h instead.
  std::vector<ValueId> Add(std::string_view op, Attributes attributes,
                           std::span<const ValueId> inputs, int output_count,
                           std::string_view name = "");
  // For an op with one output.
  ValueId AddOne(std::string_view op, Attributes attributes, std::initializer_list<ValueId> inputs,
                 std::string_view name = "");

  // Makes a value a result of the run, under a name that is new among outputs. A value that has an
  // output name already, or was not made by a node of its own, is copied first.
  void MarkOutput(std::string_view name, ValueId value);

  // The number that tells one random op of this graph from another; each call gives the next. The
  // same model code gives the same numbers whatever the batch.
  int64_t NextRandomOp() { return next_random_op_++; }

  // Records an error of a caller that builds on this class (the first one sticks).
  void Fail(const absl::Status& status);
  // The first error, or OK.
  const absl::Status& status() const { return status_; }

  // Of a valid id of this graph.
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  const ValueSpec& spec(ValueId id) const { return value(id).spec; }
  std::vector<ValueSpec> specs(std::span<const ValueId> ids) const;
  // The shape, or a scalar's for an invalid id, so that code that builds a model can go on after an
  // error.
  Shape shape(ValueId id) const { return id.valid() ? spec(id).shape : Shape(); }
  const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }

  std::span<const Value> values() const { return values_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const NamedValue> outputs() const { return outputs_; }
  // The ids of one kind, in the order in which they were declared.
  std::vector<ValueId> OfKind(ValueKind kind) const;
  // An input, parameter or state by name; invalid when there is none.
  ValueId Find(std::string_view name) const;

 private:
  ValueId Declare(std::string_view name, const Shape& shape, DType dtype, ValueKind kind);
  ValueId NewValue(std::string name, const ValueSpec& spec, ValueKind kind, int32_t producer);
  std::string UniqueNodeName(std::string_view op, std::string_view wanted);
  absl::Status TryAdd(Node node, std::vector<ValueId>* outputs);
  bool IsOutput(ValueId id) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<NamedValue> outputs_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> node_names_;
  int64_t next_random_op_ = 0;
  absl::Status status_;
};

// The graph as text, one line per value from outside, node and output, for people and golden files:
//   input images: f32[32, 1, 8, 8]
//   %4 = linear_0: linear(%3, fc.weight, fc.bias) -> f32[32, 10]
//   output logits = %4
std::string ToString(const Graph& graph);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_GRAPH_H_

// What the graph knows of an op: its shapes and its gradient. How it is computed is the kernels'
// matter. Only an op's first output may carry a gradient; the others are statistics and saved
// values.
//
// To add an op: one file in graph/ops/ with its OpDefinition and builder, one line in
// graph/op_definition.cc, a reference and a fast kernel with a line in
// kernels/implementation_list.cc, and a case in graph/cases/, with which shapes, gradients, kernels
// and repeatability are then checked.
#ifndef RINGMASTER_RUNTIME_GRAPH_OP_DEFINITION_H_
#define RINGMASTER_RUNTIME_GRAPH_OP_DEFINITION_H_

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace ringmaster::graph {

// What shape inference sees.
struct InferContext {
  const Attributes& attributes;
  std::span<const ValueSpec> inputs;
};

// What a gradient builder sees: one node of the forward graph, and the gradients of its outputs. It
// adds nodes to graph() and calls SetGradient for each input that needs one.
class GradientContext {
 public:
  GradientContext(Graph& graph, const Node& node, std::vector<ValueId> output_gradients,
                  std::vector<bool> needed);

  Graph& graph() { return graph_; }
  const Attributes& attributes() const { return node_.attributes; }
  ValueId input(int i) const { return node_.inputs[static_cast<size_t>(i)]; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  ValueId output(int i) const { return node_.outputs[static_cast<size_t>(i)]; }
  // The gradient that flows into output i; invalid when nothing flows.
  ValueId output_gradient(int i) const { return output_gradients_[static_cast<size_t>(i)]; }

  // Whether somebody wants the gradient of input i (an absent optional input is never wanted).
  bool Needs(int i) const { return i < input_count() && needed_[static_cast<size_t>(i)]; }
  void SetGradient(int i, ValueId gradient) { gradients_[static_cast<size_t>(i)] = gradient; }
  ValueId gradient(int i) const { return gradients_[static_cast<size_t>(i)]; }
  // "grad/<node's name>/<what>", the name for a node of the backward pass.
  std::string Name(std::string_view what) const;

 private:
  Graph& graph_;
  Node node_;  // a copy: adding nodes moves the graph's own
  std::vector<ValueId> output_gradients_;
  std::vector<bool> needed_;
  std::vector<ValueId> gradients_;
};

struct OpDefinition {
  std::string_view type;
  int output_count;
  // The outputs' specs, or kInvalidArgument saying which shapes do not fit. Never empty.
  absl::StatusOr<std::vector<ValueSpec>> (*infer)(const InferContext& context);
  // Builds the backward nodes. Null: the op has no gradient, and asking for one is an error.
  void (*gradient)(GradientContext& context);
  // The op's only output is its first input's memory under another shape; no kernel runs.
  bool alias = false;
  // Draws random numbers per sample: a run needs one sample position per extent of input 0's first
  // axis.
  bool random = false;
  // The result depends on the step's other shards. A run waits there for whoever adds them up
  // (Executor::Advance); where nobody does, the shard is the whole batch, and the only input, f64,
  // is the result.
  bool over_shards = false;
};

// The definition of an op, or null. The pointer lives as long as the process.
const OpDefinition* FindOp(std::string_view type);

// All definitions, for tests that walk over every op.
std::span<const OpDefinition* const> AllOps();

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_OP_DEFINITION_H_

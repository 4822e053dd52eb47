#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/memory.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

// Up to so many elements, its inputs' and outputs' together, a node is run while compiling.
constexpr int64_t kMostElements = 1 << 18;

double At(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kF64 ? tensor.data<double>()[i]
                                       : static_cast<double>(tensor.data<float>()[i]);
}

Tensor Filled(const ValueSpec& spec, double value) {
  Tensor tensor(spec.shape, spec.dtype);
  if (spec.dtype == DType::kF64) {
    std::ranges::fill(tensor.span<double>(), value);
  } else {
    std::ranges::fill(tensor.span<float>(), static_cast<float>(value));
  }
  return tensor;
}

// What every element of the tensor is, bit by bit, where a constant's attribute can say it.
std::optional<double> ValueOfAll(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.raw());
  const size_t element = SizeOf(tensor.dtype());
  const double first = At(tensor, 0);
  const bool alike = std::memcmp(bytes, bytes + element, tensor.bytes() - element) == 0;
  return alike && !std::isnan(first) ? std::optional(first) : std::nullopt;
}

class ConstantFolding {
 public:
  ConstantFolding(const Graph& graph, kernels::Selection selection)
      : graph_(graph), uses_(graph), selection_(selection), rewriter_(graph) {}

  Graph Run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (uses_.IsLive(static_cast<int32_t>(i)) && !Fold(node)) rewriter_.Copy(node);
    }
    return rewriter_.Finish();
  }

 private:
  // The constant, in the new graph, that stands for an old value; or null.
  const Node* ConstantOf(ValueId old) const {
    const Graph& to = rewriter_.to();
    const int32_t producer = to.value(rewriter_.Of(old)).producer;
    if (producer < 0 || to.node(producer).op->type != "constant") return nullptr;
    return &to.node(producer);
  }

  bool Fold(const Node& node) {
    const auto is_constant = [&](ValueId id) { return ConstantOf(id) != nullptr; };
    if (node.inputs.empty() || !std::ranges::all_of(node.inputs, is_constant)) return false;
    if (node.op->random || node.op->over_shards || uses_.MakesOutput(node)) return false;
    const std::vector<double> values = ValuesOf(node);
    if (values.size() != node.outputs.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      const ValueId constant =
          Constant(rewriter_.to(), values[i], graph_.spec(node.outputs[i]), node.name);
      rewriter_.Map(node.outputs[i], constant);
    }
    return true;
  }

  // What fills each of its outputs; none where that is no single number.
  std::vector<double> ValuesOf(const Node& node) const {
    std::vector<Tensor> inputs, outputs;
    int64_t elements = 0;
    for (const ValueId id : node.outputs) {
      const ValueSpec& spec = graph_.spec(id);
      if (spec.dtype != DType::kF32 && spec.dtype != DType::kF64) return {};
      elements += spec.shape.elements();
    }
    for (const ValueId id : node.inputs) elements += graph_.shape(id).elements();
    if (node.op->alias) return {ConstantOf(node.inputs[0])->attributes.Real("value")};
    if (elements > kMostElements) return {};
    for (const ValueId id : node.inputs)
      inputs.push_back(Filled(graph_.spec(id), ConstantOf(id)->attributes.Real("value")));
    for (const ValueId id : node.outputs) outputs.push_back(Filled(graph_.spec(id), 0));
    if (!Compute(node, inputs, outputs)) return {};
    std::vector<double> values;
    for (const Tensor& output : outputs) {
      const std::optional<double> value = ValueOfAll(output);
      if (!value) return {};
      values.push_back(*value);
    }
    return values;
  }

  // By the kernel that would compute the node in each run, so that the bits are its own.
  bool Compute(const Node& node, std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) const {
    const std::vector<ValueSpec> in = graph_.specs(node.inputs), out = graph_.specs(node.outputs);
    const auto primitive = kernels::Prepare({node.op->type, node.attributes, in, out}, selection_);
    if (primitive == nullptr) return false;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const Tensor& tensor : inputs) from.push_back(tensor.raw());
    for (Tensor& tensor : outputs) to.push_back(tensor.raw());
    const device::Buffer scratch(primitive->scratch_bytes());
    const kernels::RunContext context;
    primitive->Run({from.data(), to.data(), scratch.data(), &context});
    return true;
  }

  const Graph& graph_;
  const Uses uses_;
  const kernels::Selection selection_;
  Rewriter rewriter_;
};

}  // namespace

Graph FoldConstants(const Graph& graph, kernels::Selection selection) {
  return ConstantFolding(graph, selection).Run();
}

}  // namespace ringmaster::graph

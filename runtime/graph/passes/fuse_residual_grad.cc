#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

constexpr std::string_view kFused = "batch_norm_add_relu_grad";
// Of batch_norm_grad.
constexpr size_t kGradient = 4;

class ResidualGradFusion {
 public:
  ResidualGradFusion(const Graph& graph, kernels::Selection selection)
      : graph_(graph),
        selection_(selection),
        uses_(graph),
        norm_grads_(graph.nodes().size(), kNone),
        rewriter_(graph) {}

  Graph Run() {
    std::vector<bool> taken(graph_.nodes().size());
    for (int32_t i = 0; i < Count(); ++i) {
      const int32_t norm_grad = uses_.IsLive(i) ? NormGradOf(i) : kNone;
      if (norm_grad == kNone) continue;
      norm_grads_[static_cast<size_t>(i)] = norm_grad;
      taken[static_cast<size_t>(norm_grad)] = true;
    }
    for (int32_t i = 0; i < Count(); ++i) {
      if (uses_.IsLive(i) && !taken[static_cast<size_t>(i)]) Rewrite(i);
    }
    return rewriter_.Finish();
  }

 private:
  static constexpr int32_t kNone = -1;

  int32_t Count() const { return static_cast<int32_t>(graph_.nodes().size()); }

  // The first batch_norm_grad that reads this relu_grad and may be computed with it, in its place;
  // or none.
  int32_t NormGradOf(int32_t relu_grad) const {
    const Node& node = graph_.node(relu_grad);
    if (node.op->type != "relu_grad") return kNone;
    for (const int32_t reader : uses_.ReadersOf(node.outputs[0])) {
      const Node& norm_grad = graph_.node(reader);
      if (norm_grad.op->type != "batch_norm_grad" || norm_grad.attributes.Int("relu") != 0)
        continue;
      if (!(norm_grad.inputs[kGradient] == node.outputs[0])) continue;
      const bool comes_before = std::ranges::all_of(
          norm_grad.inputs.begin(), norm_grad.inputs.begin() + kGradient,
          [&](ValueId input) { return graph_.value(input).producer < relu_grad; });
      if (comes_before && HasKernel(node, norm_grad)) return reader;
    }
    return kNone;
  }

  static std::vector<ValueId> InputsOf(const Node& relu_grad, const Node& norm_grad) {
    std::vector<ValueId> inputs(norm_grad.inputs.begin(), norm_grad.inputs.begin() + kGradient);
    inputs.insert(inputs.end(), relu_grad.inputs.begin(), relu_grad.inputs.end());
    return inputs;
  }

  // Of images in rows both nodes have kernels of ours, which the reference kernel for both is not
  // worth.
  bool HasKernel(const Node& relu_grad, const Node& norm_grad) const {
    const std::vector<ValueSpec> inputs = graph_.specs(InputsOf(relu_grad, norm_grad));
    if (inputs[0].layout == Layout::kRowMajor) return false;
    std::vector<ValueSpec> outputs = graph_.specs(norm_grad.outputs);
    outputs.push_back(graph_.spec(relu_grad.outputs[0]));
    return kernels::Prepare({kFused, norm_grad.attributes, inputs, outputs}, selection_) != nullptr;
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const int32_t with = norm_grads_[static_cast<size_t>(index)];
    if (with == kNone) {
      rewriter_.Copy(node);
      return;
    }
    const Node& norm_grad = graph_.node(with);
    const std::vector<ValueId> outputs =
        rewriter_.to().Add(kFused, norm_grad.attributes, rewriter_.Of(InputsOf(node, norm_grad)),
                           static_cast<int>(norm_grad.outputs.size()) + 1, norm_grad.name);
    for (size_t i = 0; i < norm_grad.outputs.size(); ++i)
      rewriter_.Map(norm_grad.outputs[i], outputs[i]);
    rewriter_.Map(node.outputs[0], outputs.back());
  }

  const Graph& graph_;
  const kernels::Selection selection_;
  const Uses uses_;
  std::vector<int32_t> norm_grads_;  // by node: the batch_norm_grad that is computed with it
  Rewriter rewriter_;
};

}  // namespace

Graph FuseResidualGrad(const Graph& graph, kernels::Selection selection) {
  return ResidualGradFusion(graph, selection).Run();
}

}  // namespace ringmaster::graph

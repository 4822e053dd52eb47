#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/join_nodes.h"
#include "runtime/graph/passes/passes.h"

namespace ringmaster::graph {
namespace {

class ResidualGradFusion {
 public:
  ResidualGradFusion(const Graph& graph, kernels::Selection selection)
      : graph_(graph), selection_(selection) {}

  // The first batch_norm_grad that reads this relu_grad and may be computed with it, in its place;
  // or none.
  int32_t NormGradOf(const Uses& uses, int32_t relu_grad) const {
    const Node& node = graph_.node(relu_grad);
    if (node.op->type != "relu_grad") return kNoNode;
    for (const int32_t reader : uses.ReadersOf(node.outputs[0])) {
      const Node& norm_grad = graph_.node(reader);
      if (norm_grad.op->type != "batch_norm_grad" || norm_grad.attributes.Int("relu") != 0)
        continue;
      if (!(norm_grad.inputs[kGradient] == node.outputs[0])) continue;
      const bool comes_before = std::ranges::all_of(
          norm_grad.inputs.begin(), norm_grad.inputs.begin() + kGradient,
          [&](ValueId input) { return graph_.value(input).producer < relu_grad; });
      if (comes_before && HasKernel(node, norm_grad)) return reader;
    }
    return kNoNode;
  }

  static void AddBoth(Rewriter& rewriter, const Node& relu_grad, const Node& norm_grad) {
    const std::vector<ValueId> outputs =
        rewriter.to().Add(kFused, norm_grad.attributes, rewriter.Of(InputsOf(relu_grad, norm_grad)),
                          static_cast<int>(norm_grad.outputs.size()) + 1, norm_grad.name);
    for (size_t i = 0; i < norm_grad.outputs.size(); ++i)
      rewriter.Map(norm_grad.outputs[i], outputs[i]);
    rewriter.Map(relu_grad.outputs[0], outputs.back());
  }

 private:
  static constexpr std::string_view kFused = "batch_norm_add_relu_grad";
  static constexpr size_t kGradient = 4;  // of batch_norm_grad

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

  const Graph& graph_;
  const kernels::Selection selection_;
};

}  // namespace

Graph FuseResidualGrad(const Graph& graph, kernels::Selection selection) {
  const ResidualGradFusion fusion(graph, selection);
  return JoinNodes(
      graph, [&](const Uses& uses, int32_t node) { return fusion.NormGradOf(uses, node); },
      ResidualGradFusion::AddBoth);
}

}  // namespace ringmaster::graph

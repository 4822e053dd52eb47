#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/join_nodes.h"
#include "runtime/graph/passes/passes.h"

namespace ringmaster::graph {
namespace {

class ReluGradFusion {
 public:
  ReluGradFusion(const Graph& graph, kernels::Selection selection)
      : graph_(graph), selection_(selection) {}

  // The conv2d_grad_input that this relu_grad alone reads and may be computed with, or none.
  int32_t ConvolutionOf(const Uses& uses, int32_t relu_grad) const {
    const Node& node = graph_.node(relu_grad);
    if (node.op->type != "relu_grad" || node.inputs.size() != 2) return kNoNode;
    const int32_t producer = graph_.value(node.inputs[1]).producer;
    if (producer < 0 || !uses.IsOnlyReader(relu_grad, node.inputs[1])) return kNoNode;
    const Node& convolution = graph_.node(producer);
    const bool fits = convolution.op->type == "conv2d_grad_input" && convolution.inputs.size() == 2;
    return fits && HasKernel(node, convolution) ? producer : kNoNode;
  }

  static void AddBoth(Rewriter& rewriter, const Node& relu_grad, const Node& convolution) {
    rewriter.Add(convolution, convolution.attributes,
                 rewriter.Of(InputsOf(relu_grad, convolution)));
    rewriter.Map(relu_grad.outputs[0], rewriter.Of(convolution.outputs[0]));
  }

 private:
  static std::vector<ValueId> InputsOf(const Node& relu_grad, const Node& convolution) {
    return {convolution.inputs[0], convolution.inputs[1], relu_grad.inputs[0]};
  }

  // Of images in rows both nodes have kernels of ours, which the reference kernel for both is not
  // worth.
  bool HasKernel(const Node& relu_grad, const Node& convolution) const {
    const std::vector<ValueSpec> inputs = graph_.specs(InputsOf(relu_grad, convolution));
    const ValueSpec output = graph_.spec(relu_grad.outputs[0]);
    if (output.layout == Layout::kRowMajor) return false;
    return kernels::Prepare({convolution.op->type, convolution.attributes, inputs, {&output, 1}},
                            selection_) != nullptr;
  }

  const Graph& graph_;
  const kernels::Selection selection_;
};

}  // namespace

Graph FuseReluGrad(const Graph& graph, kernels::Selection selection) {
  const ReluGradFusion fusion(graph, selection);
  return JoinNodes(
      graph, [&](const Uses& uses, int32_t node) { return fusion.ConvolutionOf(uses, node); },
      ReluGradFusion::AddBoth);
}

}  // namespace ringmaster::graph

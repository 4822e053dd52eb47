#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

class ReluGradFusion {
 public:
  ReluGradFusion(const Graph& graph, kernels::Selection selection)
      : graph_(graph),
        selection_(selection),
        uses_(graph),
        convolutions_(graph.nodes().size(), kNone),
        is_absorbed_(graph.nodes().size()),
        rewriter_(graph) {}

  Graph Run() {
    uses_.ForEachLive([&](int32_t i) {
      const int32_t convolution = ConvolutionOf(i);
      if (convolution == kNone) return;
      convolutions_[static_cast<size_t>(i)] = convolution;
      is_absorbed_[static_cast<size_t>(convolution)] = true;
    });
    uses_.ForEachLive([&](int32_t i) {
      if (!is_absorbed_[static_cast<size_t>(i)]) Rewrite(i);
    });
    return rewriter_.Finish();
  }

 private:
  static constexpr int32_t kNone = -1;

  // The conv2d_grad_input that this relu_grad alone reads and may be computed with, or none.
  int32_t ConvolutionOf(int32_t relu_grad) const {
    const Node& node = graph_.node(relu_grad);
    if (node.op->type != "relu_grad" || node.inputs.size() != 2) return kNone;
    const int32_t producer = graph_.value(node.inputs[1]).producer;
    if (producer < 0 || !uses_.IsOnlyReader(relu_grad, node.inputs[1])) return kNone;
    const Node& convolution = graph_.node(producer);
    const bool fits = convolution.op->type == "conv2d_grad_input" && convolution.inputs.size() == 2;
    return fits && HasKernel(node, convolution) ? producer : kNone;
  }

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

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const int32_t with = convolutions_[static_cast<size_t>(index)];
    if (with == kNone) {
      rewriter_.Copy(node);
      return;
    }
    const Node& convolution = graph_.node(with);
    rewriter_.Add(convolution, convolution.attributes, rewriter_.Of(InputsOf(node, convolution)));
    rewriter_.Map(node.outputs[0], rewriter_.Of(convolution.outputs[0]));
  }

  const Graph& graph_;
  const kernels::Selection selection_;
  const Uses uses_;
  std::vector<int32_t> convolutions_;  // by node: of a relu_grad what is computed with it
  std::vector<bool> is_absorbed_;      // by node: it is computed with another
  Rewriter rewriter_;
};

}  // namespace

Graph FuseReluGrad(const Graph& graph, kernels::Selection selection) {
  return ReluGradFusion(graph, selection).Run();
}

}  // namespace ringmaster::graph

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/join_nodes.h"
#include "runtime/graph/passes/passes.h"

namespace ringmaster::graph {
namespace {

class ConvNormFusion {
 public:
  explicit ConvNormFusion(const Graph& graph) : graph_(graph) {}

  // The convolution whose result this batch norm alone reads, and that it may be computed with, or
  // none. One with a bias is left alone: batch norm makes that useless, and Winograd's kernels do
  // not take it (winograd_blocks.cc).
  int32_t ConvolutionOf(const Uses& uses, int32_t norm) const {
    const Node& node = graph_.node(norm);
    if (node.op->type != "batch_norm_inference") return kNoNode;
    const int32_t producer = graph_.value(node.inputs[0]).producer;
    if (producer < 0 || !uses.IsOnlyReader(norm, node.inputs[0])) return kNoNode;
    const Node& convolution = graph_.node(producer);
    const bool fits = convolution.op->type == "conv2d" && convolution.inputs.size() == 2 &&
                      convolution.attributes.Int("relu") == 0;
    return fits && HasKernel(node, convolution) ? producer : kNoNode;
  }

  static void AddBoth(Rewriter& rewriter, const Node& norm, const Node& convolution) {
    const std::vector<ValueId> made = rewriter.to().Add(kFused, AttributesOf(norm, convolution),
                                                        rewriter.Of(InputsOf(norm, convolution)),
                                                        /*output_count=*/1, convolution.name);
    rewriter.Map(norm.outputs[0], made[0]);
  }

 private:
  static constexpr std::string_view kFused = "conv2d_batch_norm";

  static std::vector<ValueId> InputsOf(const Node& norm, const Node& convolution) {
    std::vector<ValueId> inputs = convolution.inputs;
    inputs.insert(inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
    return inputs;
  }

  static Attributes AttributesOf(const Node& norm, const Node& convolution) {
    return convolution.attributes.With("epsilon", norm.attributes.Real("epsilon"))
        .With("relu", norm.attributes.Int("relu"));
  }

  // Of ours: what the reference kernel does for both is slower than what there is for each.
  bool HasKernel(const Node& norm, const Node& convolution) const {
    const std::vector<ValueSpec> inputs = graph_.specs(InputsOf(norm, convolution));
    const ValueSpec output = graph_.spec(norm.outputs[0]);
    return kernels::TakesVectors({kFused, AttributesOf(norm, convolution), inputs, {&output, 1}});
  }

  const Graph& graph_;
};

}  // namespace

Graph FuseConvNorm(const Graph& graph, kernels::Selection selection) {
  if (selection != kernels::Selection::kFastest) return graph;
  const ConvNormFusion fusion(graph);
  return JoinNodes(
      graph, [&](const Uses& uses, int32_t node) { return fusion.ConvolutionOf(uses, node); },
      ConvNormFusion::AddBoth);
}

}  // namespace ringmaster::graph

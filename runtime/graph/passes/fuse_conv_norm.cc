#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

class ConvNormFusion {
 public:
  explicit ConvNormFusion(const Graph& graph)
      : graph_(graph),
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
  static constexpr std::string_view kFused = "conv2d_batch_norm";
  static constexpr int32_t kNone = -1;

  // The convolution whose result this batch norm alone reads, and that it may be computed with, or
  // none. One with a bias is left alone: batch norm makes that useless, and Winograd's kernels do
  // not take it (winograd_blocks.cc).
  int32_t ConvolutionOf(int32_t norm) const {
    const Node& node = graph_.node(norm);
    if (node.op->type != "batch_norm_inference") return kNone;
    const int32_t producer = graph_.value(node.inputs[0]).producer;
    if (producer < 0 || !uses_.IsOnlyReader(norm, node.inputs[0])) return kNone;
    const Node& convolution = graph_.node(producer);
    const bool fits = convolution.op->type == "conv2d" && convolution.inputs.size() == 2 &&
                      convolution.attributes.Int("relu") == 0;
    return fits && HasKernel(node, convolution) ? producer : kNone;
  }

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

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const int32_t with = convolutions_[static_cast<size_t>(index)];
    if (with == kNone) {
      rewriter_.Copy(node);
      return;
    }
    const Node& convolution = graph_.node(with);
    const std::vector<ValueId> made = rewriter_.to().Add(kFused, AttributesOf(node, convolution),
                                                         rewriter_.Of(InputsOf(node, convolution)),
                                                         /*output_count=*/1, convolution.name);
    rewriter_.Map(node.outputs[0], made[0]);
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<int32_t> convolutions_;  // by node: of a batch norm what is computed with it
  std::vector<bool> is_absorbed_;      // by node: it is computed with another
  Rewriter rewriter_;
};

}  // namespace

Graph FuseConvNorm(const Graph& graph, kernels::Selection selection) {
  return selection == kernels::Selection::kFastest ? ConvNormFusion(graph).Run() : graph;
}

}  // namespace ringmaster::graph

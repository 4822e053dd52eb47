#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

class TapKeeping {
 public:
  TapKeeping(const Graph& graph, kernels::Selection selection)
      : graph_(graph),
        selection_(selection),
        uses_(graph),
        partners_(graph.nodes().size(), kNone),
        rewriter_(graph),
        taps_(graph.nodes().size()) {}

  Graph Run() {
    uses_.ForEachLive([&](int32_t i) { FindPair(i); });
    uses_.ForEachLive([&](int32_t i) { Rewrite(i); });
    return rewriter_.Finish();
  }

 private:
  static constexpr int32_t kNone = -1;

  int32_t& PartnerOf(int32_t node) { return partners_[static_cast<size_t>(node)]; }

  // A pooling and its gradient, where both are all that reads the image.
  void FindPair(int32_t pool) {
    const Node& node = graph_.node(pool);
    const int32_t grad = uses_.MaxPoolGradOf(graph_, pool);
    if (grad < 0 || !HasKernels(node, graph_.node(grad))) return;
    // Memory that others have, or see under another shape, would be kept all the same.
    const int32_t producer = graph_.value(node.inputs[0]).producer;
    if (producer < 0 || graph_.node(producer).op->alias) return;
    PartnerOf(pool) = grad;
    PartnerOf(grad) = pool;
  }

  Attributes GradAttributes(const Node& grad) const {
    return grad.attributes.With("shape", ToInts(graph_.shape(grad.outputs[0])));
  }

  // Of images in rows both nodes have kernels of ours, which the reference kernels for these are
  // not worth.
  bool HasKernels(const Node& pool, const Node& grad) const {
    const ValueSpec x = graph_.spec(pool.inputs[0]), y = graph_.spec(pool.outputs[0]);
    if (x.layout == Layout::kRowMajor || y.layout == Layout::kRowMajor) return false;
    const auto window = pool.attributes.Ints("window");
    if (window[0] * window[1] > kMostTaps) return false;
    const ValueSpec taps{{y.shape.elements()}, DType::kU8};
    const ValueSpec pooled[] = {y, taps};
    const ValueSpec of_grad[] = {graph_.spec(grad.inputs[1]), taps};
    const ValueSpec dx = graph_.spec(grad.outputs[0]);
    return kernels::Prepare({kPool, pool.attributes, {&x, 1}, pooled}, selection_) != nullptr &&
           kernels::Prepare({kGrad, GradAttributes(grad), of_grad, {&dx, 1}}, selection_) !=
               nullptr;
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const int32_t partner = PartnerOf(index);
    if (partner == kNone) {
      rewriter_.Copy(node);
    } else if (partner > index) {
      const std::vector<ValueId> made = rewriter_.to().Add(
          kPool, node.attributes, rewriter_.Of(node.inputs), /*output_count=*/2, node.name);
      rewriter_.Map(node.outputs[0], made[0]);
      taps_[static_cast<size_t>(partner)] = made[1];
    } else {
      rewriter_.Map(node.outputs[0], rewriter_.to().AddOne(kGrad, GradAttributes(node),
                                                           {rewriter_.Of(node.inputs[1]),
                                                            taps_[static_cast<size_t>(index)]},
                                                           node.name));
    }
  }

  static constexpr std::string_view kPool = "max_pool2d_taps", kGrad = "max_pool2d_taps_grad";

  const Graph& graph_;
  const kernels::Selection selection_;
  const Uses uses_;
  std::vector<int32_t> partners_;  // by node: the other one of a pair
  Rewriter rewriter_;
  std::vector<ValueId> taps_;  // by gradient
};

}  // namespace

Graph KeepTaps(const Graph& graph, kernels::Selection selection) {
  return TapKeeping(graph, selection).Run();
}

}  // namespace ringmaster::graph

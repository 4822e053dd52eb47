#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"
#include "runtime/kernels/window.h"

namespace ringmaster::graph {
namespace {

class NormMaxPoolFusion {
 public:
  explicit NormMaxPoolFusion(const Graph& graph)
      : graph_(graph),
        uses_(graph),
        roles_(graph.nodes().size()),
        rewriter_(graph),
        taps_(graph.nodes().size()) {}

  Graph Run() {
    uses_.ForEachLive([&](int32_t i) { FindFour(i); });
    uses_.ForEachLive([&](int32_t i) { Rewrite(i); });
    return rewriter_.Finish();
  }

 private:
  static constexpr int32_t kNone = -1;

  // The nodes that become two, in the order in which they are computed. These take the places of
  // the batch norm, whose statistics others may ask for before anything is pooled, and of its
  // gradient.
  struct Four {
    int32_t norm, pool, pool_grad, norm_grad;
  };

  // What becomes of a node.
  struct Role {
    bool dropped = false;  // a pooling, and its gradient
    int32_t pool = kNone;  // of a batch norm and its gradient: with which one it is computed
  };

  Role& RoleOf(int32_t node) { return roles_[static_cast<size_t>(node)]; }

  // From the pooling on, where it and its gradient are all that reads the normalised image, and
  // the batch norm's gradient all that reads the image's.
  void FindFour(int32_t pool) {
    const int32_t pool_grad = uses_.MaxPoolGradOf(graph_, pool);
    if (pool_grad < 0) return;
    const int32_t norm = graph_.value(graph_.node(pool).inputs[0]).producer;
    if (norm < 0 || graph_.node(norm).op->type != "batch_norm" ||
        graph_.node(norm).inputs.size() != 3)
      return;
    const ValueId gradient = graph_.node(pool_grad).outputs[0];
    const Four four{norm, pool, pool_grad, uses_.OnlyReaderOf(gradient)};
    if (four.norm_grad < 0 || !IsGradOf(four, gradient) || !HasKernels(four)) return;
    RoleOf(pool).dropped = RoleOf(pool_grad).dropped = true;
    RoleOf(norm).pool = RoleOf(four.norm_grad).pool = pool;
  }

  bool IsGradOf(const Four& four, ValueId gradient) const {
    const Node &norm = graph_.node(four.norm), &grad = graph_.node(four.norm_grad);
    return grad.op->type == "batch_norm_grad" && grad.attributes.Int("relu") == 0 &&
           grad.inputs[0] == norm.inputs[0] && grad.inputs[2] == norm.outputs[1] &&
           grad.inputs[3] == norm.outputs[2] && grad.inputs[4] == gradient;
  }

  // Both of ours: what the reference kernels do for the two nodes is no faster than for the four.
  bool HasKernels(const Four& four) const {
    const Node &norm = graph_.node(four.norm), &pool = graph_.node(four.pool),
               &norm_grad = graph_.node(four.norm_grad);
    const ValueSpec y = graph_.spec(pool.outputs[0]),
                    dy = graph_.spec(graph_.node(four.pool_grad).inputs[1]);
    const ValueSpec taps{{y.shape.elements()}, DType::kU8};
    const std::vector<ValueSpec> in = graph_.specs(norm.inputs),
                                 made = graph_.specs(norm_grad.outputs);
    const ValueSpec out[] = {y, in[1], in[1], taps};
    const ValueSpec of_grad[] = {in[0], in[1], in[1], in[1], dy, taps};
    return kernels::TakesVectors({kForward, WithPooling(norm, four.pool), in, out}) &&
           kernels::TakesVectors({kBackward, WithPooling(norm_grad, four.pool), of_grad, made});
  }

  Attributes WithPooling(const Node& node, int32_t pool) const {
    return kernels::WithPooling(node.attributes, graph_.node(pool).attributes);
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const Role& role = RoleOf(index);
    if (role.dropped) return;
    if (role.pool == kNone) {
      rewriter_.Copy(node);
    } else if (node.op->type == "batch_norm") {
      Forward(node, role.pool);
    } else {
      Backward(node, role.pool);
    }
  }

  void Forward(const Node& norm, int32_t pool) {
    const std::vector<ValueId> made =
        rewriter_.to().Add(kForward, WithPooling(norm, pool), rewriter_.Of(norm.inputs),
                           /*output_count=*/4, norm.name);
    rewriter_.Map(graph_.node(pool).outputs[0], made[0]);
    rewriter_.Map(norm.outputs[1], made[1]);
    rewriter_.Map(norm.outputs[2], made[2]);
    taps_[static_cast<size_t>(pool)] = made[3];
  }

  void Backward(const Node& norm_grad, int32_t pool) {
    const Node& pool_grad = graph_.node(graph_.value(norm_grad.inputs[4]).producer);
    std::vector<ValueId> inputs = norm_grad.inputs;
    inputs[4] = pool_grad.inputs[1];
    inputs = rewriter_.Of(inputs);
    inputs.push_back(taps_[static_cast<size_t>(pool)]);
    const std::vector<ValueId> made = rewriter_.to().Add(
        kBackward, WithPooling(norm_grad, pool), inputs, /*output_count=*/3, norm_grad.name);
    for (size_t i = 0; i < made.size(); ++i) rewriter_.Map(norm_grad.outputs[i], made[i]);
  }

  static constexpr std::string_view kForward = "batch_norm_max_pool2d",
                                    kBackward = "batch_norm_max_pool2d_grad";

  const Graph& graph_;
  const Uses uses_;
  std::vector<Role> roles_;  // by node
  Rewriter rewriter_;
  std::vector<ValueId> taps_;  // by pooling
};

}  // namespace

Graph FuseNormMaxPool(const Graph& graph, kernels::Selection selection) {
  return selection == kernels::Selection::kFastest ? NormMaxPoolFusion(graph).Run() : graph;
}

}  // namespace ringmaster::graph

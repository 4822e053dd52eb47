#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"
#include "runtime/kernels/window.h"

namespace ringmaster::graph {
namespace {

class MaxPoolFusion {
 public:
  explicit MaxPoolFusion(const Graph& graph)
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

  // The nodes that become two, in the order in which they are computed.
  struct Four {
    int32_t convolution, pool, pool_grad, weight_grad;
  };

  // What becomes of a node.
  struct Role {
    bool dropped = false;         // a convolution, and a pooling's gradient
    int32_t convolution = kNone;  // of a pooling: which one it takes in
    int32_t pool = kNone;         // of a weight's gradient: whose pixels it looks at
  };

  Role& RoleOf(int32_t node) { return roles_[static_cast<size_t>(node)]; }

  // From the pooling on, where it and its gradient are all that reads the image: a convolution made
  // that, whose weights' gradient is all that reads the image's.
  void FindFour(int32_t pool) {
    const int32_t pool_grad = uses_.MaxPoolGradOf(graph_, pool);
    if (pool_grad < 0) return;
    const int32_t convolution = graph_.value(graph_.node(pool).inputs[0]).producer;
    if (convolution < 0 || graph_.node(convolution).op->type != "conv2d") return;
    const ValueId gradient = graph_.node(pool_grad).outputs[0];
    const int32_t reader = uses_.OnlyReaderOf(gradient);
    if (reader < 0) return;
    const Node& last = graph_.node(reader);
    if (last.op->type != "conv2d_grad_weight" || !(last.inputs[1] == gradient) ||
        !(last.inputs[0] == graph_.node(convolution).inputs[0]))
      return;
    const Four four{convolution, pool, pool_grad, reader};
    if (!HasKernels(four)) return;
    RoleOf(four.convolution).dropped = RoleOf(four.pool_grad).dropped = true;
    RoleOf(four.pool).convolution = convolution;
    RoleOf(four.weight_grad).pool = four.pool;
  }

  Attributes ForwardAttributes(const Four& four) const {
    return kernels::WithPooling(graph_.node(four.convolution).attributes,
                                graph_.node(four.pool).attributes);
  }
  Attributes BackwardAttributes(const Four& four) const {
    return ForwardAttributes(four).With(
        "shape", ToInts(graph_.shape(graph_.node(four.weight_grad).outputs[0])));
  }

  // Both of ours: what the reference kernels do for the two nodes is no faster than for the four.
  bool HasKernels(const Four& four) const {
    std::vector<ValueSpec> in;
    for (const ValueId input : graph_.node(four.convolution).inputs)
      in.push_back(graph_.spec(input));
    const ValueSpec y = graph_.spec(graph_.node(four.pool).outputs[0]),
                    dy = graph_.spec(graph_.node(four.pool_grad).inputs[1]),
                    weight = graph_.spec(graph_.node(four.weight_grad).outputs[0]);
    const ValueSpec taps{{y.shape.elements()}, DType::kU8};
    const ValueSpec out[] = {y, taps}, of_grad[] = {in[0], dy, taps};
    return kernels::TakesVectors({kForward, ForwardAttributes(four), in, out}) &&
           kernels::TakesVectors({kBackward, BackwardAttributes(four), of_grad, {&weight, 1}});
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const Role& role = RoleOf(index);
    if (role.dropped) return;
    if (role.convolution != kNone) {
      Forward(graph_.node(role.convolution), index);
    } else if (role.pool != kNone) {
      Backward(node, role.pool);
    } else {
      rewriter_.Copy(node);
    }
  }

  void Forward(const Node& convolution, int32_t index) {
    const Node& pool = graph_.node(index);
    const std::vector<ValueId> made =
        rewriter_.to().Add(kForward, kernels::WithPooling(convolution.attributes, pool.attributes),
                           rewriter_.Of(convolution.inputs), /*output_count=*/2, convolution.name);
    rewriter_.Map(pool.outputs[0], made[0]);
    taps_[static_cast<size_t>(index)] = made[1];
  }

  void Backward(const Node& weight_grad, int32_t pool) {
    const Node& pool_grad = graph_.node(graph_.value(weight_grad.inputs[1]).producer);
    const Attributes attributes =
        kernels::WithPooling(weight_grad.attributes, graph_.node(pool).attributes);
    const ValueId x = rewriter_.Of(weight_grad.inputs[0]), dy = rewriter_.Of(pool_grad.inputs[1]);
    rewriter_.Map(
        weight_grad.outputs[0],
        rewriter_.to().AddOne(kBackward, attributes, {x, dy, taps_[static_cast<size_t>(pool)]},
                              weight_grad.name));
  }

  static constexpr std::string_view kForward = "conv2d_max_pool2d",
                                    kBackward = "conv2d_max_pool2d_grad_weight";

  const Graph& graph_;
  const Uses uses_;
  std::vector<Role> roles_;  // by node
  Rewriter rewriter_;
  std::vector<ValueId> taps_;  // by pooling
};

}  // namespace

Graph FuseMaxPool(const Graph& graph, kernels::Selection selection) {
  return selection == kernels::Selection::kFastest ? MaxPoolFusion(graph).Run() : graph;
}

}  // namespace ringmaster::graph

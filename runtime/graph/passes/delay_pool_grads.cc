#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

class PoolGradDelay {
 public:
  explicit PoolGradDelay(const Graph& graph)
      : graph_(graph), uses_(graph), moves_(graph.nodes().size()), rewriter_(graph) {}

  Graph Run() {
    uses_.ForEachLive([&](int32_t i) { FindMove(i); });
    uses_.ForEachLive([&](int32_t i) { Rewrite(i); });
    return rewriter_.Finish();
  }

 private:
  static constexpr int32_t kNone = -1;

  // What becomes of a node.
  struct Move {
    bool dropped = false;  // a max_pool2d_grad that is made behind the relu_grad that reads it
    int32_t pool = kNone;  // of that relu_grad: the max_pool2d whose result it takes
  };

  Move& MoveOf(int32_t node) { return moves_[static_cast<size_t>(node)]; }

  // A relu_grad of what was pooled, and nobody else, must read the pooling's gradient.
  void FindMove(int32_t relu_grad) {
    const Node& node = graph_.node(relu_grad);
    if (node.op->type != "relu_grad" || node.inputs.size() != 2) return;
    const int32_t grad = graph_.value(node.inputs[1]).producer;
    if (grad < 0 || graph_.node(grad).op->type != "max_pool2d_grad") return;
    if (!uses_.IsOnlyReader(relu_grad, node.inputs[1])) return;
    if (!(graph_.node(grad).inputs[0] == node.inputs[0])) return;
    const int32_t pool = PoolOf(graph_.node(grad), relu_grad);
    if (pool == kNone) return;
    MoveOf(grad).dropped = true;
    MoveOf(relu_grad).pool = pool;
  }

  // The max_pool2d that this is the gradient of, where it is computed before node `before`.
  int32_t PoolOf(const Node& grad, int32_t before) const {
    for (const int32_t reader : uses_.ReadersOf(grad.inputs[0])) {
      const Node& node = graph_.node(reader);
      if (reader < before && node.op->type == "max_pool2d" &&
          node.attributes.ToString() == grad.attributes.ToString())
        return reader;
    }
    return kNone;
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const Move& move = MoveOf(index);
    if (move.dropped) return;
    if (move.pool != kNone) {
      Exchange(node, graph_.node(move.pool));
    } else if (SumsPixels(node)) {
      const ValueId pixels[] = {FewestPixels(rewriter_.Of(node.inputs[0]))};
      rewriter_.Add(node, node.attributes, pixels);
    } else {
      rewriter_.Copy(node);
    }
  }

  // Whether it sums each channel of images.
  bool SumsPixels(const Node& node) const {
    if (node.op->type != "sum_to") return false;
    const Shape& x = graph_.shape(node.inputs[0]);
    return x.rank() == 4 && graph_.shape(node.outputs[0]) == Shape{x.dim(1), 1, 1};
  }

  // What has the same sums, in the new graph, and fewer pixels where that is a max pooling's
  // gradient: that gives each of its own to one pixel.
  ValueId FewestPixels(ValueId gradient) const {
    const Graph& to = rewriter_.to();
    const int32_t producer = to.value(gradient).producer;
    const bool pooled = producer >= 0 && to.node(producer).op->type == "max_pool2d_grad";
    return pooled ? to.node(producer).inputs[1] : gradient;
  }

  void Exchange(const Node& relu_grad, const Node& pool) {
    const Node& grad = graph_.node(graph_.value(relu_grad.inputs[1]).producer);
    const ValueId of_pooled[] = {rewriter_.Of(pool.outputs[0]), rewriter_.Of(grad.inputs[1])};
    rewriter_.Add(relu_grad, relu_grad.attributes, of_pooled);
    const ValueId of_image[] = {rewriter_.Of(grad.inputs[0]), rewriter_.Of(relu_grad.outputs[0])};
    rewriter_.Add(grad, grad.attributes, of_image);
    rewriter_.Map(relu_grad.outputs[0], rewriter_.Of(grad.outputs[0]));
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<Move> moves_;  // by node
  Rewriter rewriter_;
};

}  // namespace

Graph DelayPoolGrads(const Graph& graph) {
  return PoolGradDelay(graph).Run();
}

}  // namespace ringmaster::graph

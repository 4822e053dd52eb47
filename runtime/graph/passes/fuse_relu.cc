#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

class ReluFusion {
 public:
  explicit ReluFusion(const Graph& graph)
      : graph_(graph), uses_(graph), fates_(graph.nodes().size()), rewriter_(graph) {}

  Graph Run() {
    uses_.ForEachLive([&](int32_t i) {
      if (Is(i, "relu")) FuseForward(i);
    });
    uses_.ForEachLive([&](int32_t i) {
      if (Is(i, "batch_norm_grad")) FuseBackward(i);
    });
    uses_.ForEachLive([&](int32_t i) {
      if (Is(i, "relu_grad")) FuseSum(i);
    });
    uses_.ForEachLive([&](int32_t i) { Rewrite(i); });
    return rewriter_.Finish();
  }

 private:
  // What becomes of a node.
  struct Fate {
    bool dropped = false;    // another computes it
    int32_t norm = -1;       // of a ReLU: the batch norm that is computed in its place,
    ValueId addend;          // and what is added in between;
    int32_t product = -1;    // or the convolution or linear layer
    int32_t relu_grad = -1;  // of a batch_norm_grad: what is computed with it
    int32_t sum = -1;        // of a relu_grad: the same
  };

  bool Is(int32_t node, std::string_view op) const {
    return node >= 0 && graph_.node(node).op->type == op;
  }
  int32_t ProducerOf(ValueId value) const { return graph_.value(value).producer; }
  Fate& FateOf(int32_t node) { return fates_[static_cast<size_t>(node)]; }

  // The node that makes the value, where it is of this op and only `reader` reads the value; or -1.
  int32_t Absorbed(ValueId value, std::string_view op, int32_t reader) const {
    const int32_t producer = ProducerOf(value);
    return Is(producer, op) && uses_.IsOnlyReader(reader, value) ? producer : -1;
  }

  // A batch norm of any kind. (The gradient of a synchronised one is left alone: its two passes
  // would each find out again where the result was positive.)
  int32_t AbsorbedNorm(ValueId value, int32_t reader) const {
    for (const std::string_view op :
         {"batch_norm", "batch_norm_synchronised", "batch_norm_inference"}) {
      if (const int32_t norm = Absorbed(value, op, reader); norm >= 0) return norm;
    }
    return -1;
  }

  // An add without broadcasting.
  int32_t AbsorbedSum(ValueId value, int32_t reader) const {
    const int32_t sum = Absorbed(value, "add", reader);
    if (sum < 0) return -1;
    const std::vector<ValueId>& terms = graph_.node(sum).inputs;
    return graph_.shape(terms[0]) == graph_.shape(terms[1]) ? sum : -1;
  }

  void FuseForward(int32_t relu) {
    const ValueId x = graph_.node(relu).inputs[0];
    if (const int32_t norm = AbsorbedNorm(x, relu); norm >= 0) {
      Absorb(relu, norm, {});
      return;
    }
    for (const std::string_view op : {"conv2d", "linear"}) {
      const int32_t product = Absorbed(x, op, relu);
      if (product < 0) continue;
      FateOf(product).dropped = true;
      FateOf(relu).product = product;
      return;
    }
    const int32_t sum = AbsorbedSum(x, relu);
    if (sum < 0) return;
    const std::vector<ValueId>& terms = graph_.node(sum).inputs;
    for (size_t i = 0; i < 2; ++i) {
      const int32_t norm = AbsorbedNorm(terms[i], sum);
      if (norm < 0 || !Absorb(relu, norm, terms[1 - i])) continue;
      FateOf(sum).dropped = true;
      return;
    }
  }

  // The batch norm moves to the ReLU's place, before which nobody may ask for its statistics.
  bool Absorb(int32_t relu, int32_t norm, ValueId addend) {
    const std::vector<ValueId>& outputs = graph_.node(norm).outputs;
    for (size_t i = 1; i < outputs.size(); ++i) {
      const auto readers = uses_.ReadersOf(outputs[i]);
      if (!readers.empty() && readers.front() < relu) return false;
    }
    FateOf(norm).dropped = true;
    FateOf(relu).norm = norm;
    FateOf(relu).addend = addend;
    return true;
  }

  // dx of relu(batch_norm(x)): where the result was positive follows from x.
  void FuseBackward(int32_t norm_grad) {
    const Node& node = graph_.node(norm_grad);
    const int32_t relu_grad = Absorbed(node.inputs[4], "relu_grad", norm_grad);
    if (relu_grad < 0 || graph_.node(relu_grad).inputs.size() != 2) return;
    const int32_t relu = ProducerOf(graph_.node(relu_grad).inputs[0]);
    if (!Is(relu, "relu")) return;
    const Fate& fate = FateOf(relu);
    if (fate.norm < 0 || fate.addend.valid()) return;
    if (!(graph_.node(fate.norm).outputs[1] == node.inputs[2])) return;
    FateOf(relu_grad).dropped = true;
    FateOf(norm_grad).relu_grad = relu_grad;
  }

  void FuseSum(int32_t relu_grad) {
    if (FateOf(relu_grad).dropped || graph_.node(relu_grad).inputs.size() != 2) return;
    const int32_t sum = AbsorbedSum(graph_.node(relu_grad).inputs[1], relu_grad);
    if (sum < 0) return;
    FateOf(sum).dropped = true;
    FateOf(relu_grad).sum = sum;
  }

  void Rewrite(int32_t index) {
    const Node& node = graph_.node(index);
    const Fate& fate = FateOf(index);
    if (fate.dropped) return;
    if (fate.norm >= 0) {
      RewriteForward(node, fate);
    } else if (fate.product >= 0) {
      const Node& product = graph_.node(fate.product);
      Replace(node, product, rewriter_.Of(product.inputs));
    } else if (fate.relu_grad >= 0) {
      RewriteBackward(node, fate);
    } else if (fate.sum >= 0) {
      const std::vector<ValueId>& terms = graph_.node(fate.sum).inputs;
      const ValueId inputs[] = {node.inputs[0], terms[0], terms[1]};
      rewriter_.Add(node, node.attributes, rewriter_.Of(inputs));
    } else {
      rewriter_.Copy(node);
    }
  }

  void RewriteForward(const Node& relu, const Fate& fate) {
    const Node& norm = graph_.node(fate.norm);
    std::vector<ValueId> inputs = rewriter_.Of(norm.inputs);
    if (fate.addend.valid()) inputs.push_back(rewriter_.Of(fate.addend));
    Replace(relu, norm, inputs);
  }

  // What was before the ReLU, with a ReLU of its own, in its place.
  void Replace(const Node& relu, const Node& before, std::span<const ValueId> inputs) {
    rewriter_.Add(before, before.attributes.With("relu", int64_t{1}), inputs);
    rewriter_.Map(relu.outputs[0], rewriter_.Of(before.outputs[0]));
  }

  void RewriteBackward(const Node& norm_grad, const Fate& fate) {
    const Node& relu_grad = graph_.node(fate.relu_grad);
    const Node& norm = graph_.node(FateOf(ProducerOf(relu_grad.inputs[0])).norm);
    std::vector<ValueId> inputs = norm_grad.inputs;
    inputs[4] = relu_grad.inputs[1];
    inputs.push_back(norm.inputs[2]);
    rewriter_.Add(norm_grad, norm_grad.attributes.With("relu", int64_t{1}), rewriter_.Of(inputs));
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<Fate> fates_;  // by node
  Rewriter rewriter_;
};

}  // namespace

Graph FuseRelu(const Graph& graph) {
  return ReluFusion(graph).Run();
}

}  // namespace ringmaster::graph

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

bool AreZero(const std::vector<int64_t>& values) {
  return std::ranges::all_of(values, [](int64_t v) { return v == 0; });
}

// Not here, for they change a bit somewhere: x + 0 and the sum of a single term (a zero loses its
// sign), a scale of a scale (rounded once instead of twice).
class Simplification {
 public:
  explicit Simplification(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph Run() {
    const Uses uses(graph_);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!uses.IsLive(static_cast<int32_t>(i))) continue;
      const Node& node = graph_.nodes()[i];
      if (const ValueId same = SameAs(node, uses); same.valid()) {
        rewriter_.Map(node.outputs[0], same);
      } else if (!Join(node)) {
        rewriter_.Copy(node);
      }
    }
    return rewriter_.Finish();
  }

 private:
  // Inputs, shapes and makers of the new graph.
  ValueId Input(const Node& node, size_t i = 0) const { return rewriter_.Of(node.inputs[i]); }
  const Shape& ShapeOf(ValueId now) const { return rewriter_.to().spec(now).shape; }
  // The node that makes the value, where it is of this op, or null.
  const Node* Maker(ValueId now, std::string_view op) const {
    const int32_t producer = rewriter_.to().value(now).producer;
    if (producer < 0 || rewriter_.to().node(producer).op->type != op) return nullptr;
    return &rewriter_.to().node(producer);
  }

  bool IsOne(ValueId now) const {
    const Node* constant = Maker(now, "constant");
    return constant != nullptr && constant->attributes.Real("value") == 1.0;
  }

  // The value, in the new graph, whose elements the node's result has; or none.
  ValueId SameAs(const Node& node, const Uses& uses) const {
    const std::string_view op = node.op->type;
    const Shape& shape = graph_.shape(node.outputs[0]);
    const Attributes& a = node.attributes;
    if (op == "multiply") {
      if (IsOne(Input(node, 1))) return Input(node, 0);
      return IsOne(Input(node, 0)) && ShapeOf(Input(node, 1)) == shape ? Input(node, 1) : ValueId{};
    }
    const bool changes_nothing =
        (op == "copy" && !uses.MakesOutput(node)) ||
        ((op == "reshape" || op == "slice") && ShapeOf(Input(node)) == shape) ||
        (op == "pad" && AreZero(a.Ints("before")) && AreZero(a.Ints("after"))) ||
        (op == "transpose" && std::ranges::is_sorted(a.Ints("axes"))) ||
        (op == "concat" && node.inputs.size() == 1) || (op == "scale" && a.Real("factor") == 1.0) ||
        (op == "dropout" && a.Real("rate") == 0.0) ||
        (op == "relu" && Maker(Input(node), "relu") != nullptr);
    return changes_nothing ? Input(node) : ValueId{};
  }

  // Makes one node of this one and the one before; the latter goes where nobody else reads it.
  bool Join(const Node& node) {
    const std::string_view op = node.op->type;
    if (op != "reshape" && op != "transpose") return false;
    const Node* before = Maker(Input(node), op);
    if (before == nullptr) return false;
    const ValueId x = before->inputs[0];
    const bool back = op == "reshape" ? ShapeOf(x) == graph_.shape(node.outputs[0])
                                      : std::ranges::is_sorted(AxesOf(*before, node));
    if (back) {
      rewriter_.Map(node.outputs[0], x);
    } else if (op == "reshape") {
      rewriter_.Add(node, node.attributes, {&x, 1});
    } else {
      rewriter_.Add(node, node.attributes.With("axes", AxesOf(*before, node)), {&x, 1});
    }
    return true;
  }

  // Of both transposes together.
  static std::vector<int64_t> AxesOf(const Node& first, const Node& second) {
    const std::vector<int64_t> inner = first.attributes.Ints("axes");
    std::vector<int64_t> axes = second.attributes.Ints("axes");
    for (int64_t& axis : axes) axis = inner[static_cast<size_t>(axis)];
    return axes;
  }

  const Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Graph Simplify(const Graph& graph) {
  return Simplification(graph).Run();
}

}  // namespace ringmaster::graph

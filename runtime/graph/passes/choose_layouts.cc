#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"

namespace ringmaster::graph {
namespace {

// Which of a node's inputs, and whether its first output, are images whose layout it may share.
struct Images {
  std::vector<size_t> inputs;
  bool output = false;
  bool wants_blocks = false;  // whatever its inputs come in
};

// Ops that make an element of those at its place, in whatever layout.
constexpr std::array<std::string_view, 18> kElementwise = {
    "add",      "divide",    "dropout",      "exact_gelu", "exact_gelu_grad",
    "gelu",     "gelu_grad", "multiply",     "relu",       "relu_grad",
    "scale",    "sigmoid",   "sigmoid_grad", "silu",       "silu_grad",
    "subtract", "tanh",      "tanh_grad"};

std::vector<size_t> FirstOnes(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

class LayoutChoice {
 public:
  LayoutChoice(const Graph& graph, Layout layout, kernels::Selection selection)
      : graph_(graph),
        layout_(layout),
        selection_(selection),
        rewriter_(graph),
        reordered_(graph.values().size()) {}

  Graph Run() {
    const Uses uses(graph_);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (uses.IsLive(static_cast<int32_t>(i))) Rewrite(graph_.nodes()[i]);
    }
    for (const NamedValue& output : graph_.outputs())
      rewriter_.Map(output.value, In(Layout::kRowMajor, output.value));
    return rewriter_.Finish();
  }

 private:
  // Several pixels, whose channels fill whole blocks. (A single pixel lies alike in all layouts.)
  bool IsImage(ValueId value) const { return IsImage(graph_.spec(value)); }
  bool IsImage(const ValueSpec& spec) const {
    const Shape& shape = spec.shape;
    return shape.rank() == 4 && spec.dtype == DType::kF32 &&
           shape.dim(1) % static_cast<int64_t>(layout_) == 0 && shape.Product(2, 4) > 1;
  }

  // In the new graph.
  Layout LayoutOf(ValueId old) const { return rewriter_.to().spec(rewriter_.Of(old)).layout; }

  // The value in a layout, reordered at most once.
  ValueId In(Layout layout, ValueId old) {
    const ValueId now = rewriter_.Of(old);
    if (rewriter_.to().spec(now).layout == layout) return now;
    ValueId& other = reordered_[static_cast<size_t>(old.index)];
    if (!other.valid()) {
      const std::string name = fmt::format("reorder/{}", graph_.value(old).name);
      other = rewriter_.to().AddOne(
          "reorder", {{std::string(kLayoutAttribute), static_cast<int64_t>(layout)}}, {now}, name);
    }
    return other;
  }

  // Of operands that nothing brings to another shape.
  bool IsElementwise(const Node& node) const {
    const auto has_its_shape = [&](ValueId input) {
      return graph_.shape(input) == graph_.shape(node.outputs[0]);
    };
    return std::ranges::find(kElementwise, node.op->type) != kElementwise.end() &&
           std::ranges::all_of(node.inputs, has_its_shape);
  }

  Images ImagesOf(const Node& node) const {
    const std::string_view op = node.op->type;
    const bool is_image = IsImage(node.outputs[0]);
    const auto all = FirstOnes(node.inputs.size());
    if (op == "conv2d" || op == "conv2d_grad_input")
      return {{0}, is_image, WantsBlocks(node, is_image)};
    if (op == "conv2d_grad_weight") return {{0, 1}, false, WantsBlocks(node, false)};
    if (IsElementwise(node)) return {all, is_image};
    if (op == "max_pool2d" || op == "avg_pool2d" || op == "adaptive_avg_pool2d" ||
        op == "adaptive_avg_pool2d_grad" || op == "adaptive_max_pool2d")
      return {{0}, is_image};
    // From a single pixel on: nothing else says that what it leads to lies in blocks.
    if (op == "avg_pool2d_grad")
      return {{0}, is_image, took_blocks_ && is_image && !IsImage(node.inputs[0])};
    if (op == "max_pool2d_grad" || op == "adaptive_max_pool2d_grad") return {all, is_image};
    if (op == "batch_norm") {
      return node.inputs.size() == 4 ? Images{{0, 3}, is_image} : Images{{0}, is_image};
    }
    if (op == "batch_norm_again" || op == "batch_norm_synchronised" ||
        op == "batch_norm_inference") {
      return node.inputs.size() == 6 ? Images{{0, 5}, is_image} : Images{{0}, is_image};
    }
    if (op == "batch_norm_grad" || op == "batch_norm_synchronised_grad") return {{0, 4}, is_image};
    if (op == "batch_moments") return {{0}, false};
    if (op == "batch_norm_sums") return {{0, 3}, false};
    if (op == "concat" && node.attributes.Int("axis") == 1) return {all, is_image};
    if (op == "slice" && KeepsWholeBlocks(node)) return {{0}, is_image};
    if (op == "sum_to" && node.attributes.Ints("shape").size() == 3) return {{0}, false};
    return {};
  }

  // The gradient of one part of a concatenation: all pixels of some channels. An end within a block
  // would leave the part's images of the batch at odd places.
  bool KeepsWholeBlocks(const Node& node) const {
    const Shape &x = graph_.shape(node.inputs[0]), &y = graph_.shape(node.outputs[0]);
    const std::vector<int64_t> begin = node.attributes.Ints("begin");
    const auto block = static_cast<int64_t>(layout_);
    return x.rank() == 4 && x.dim(0) == y.dim(0) && x.dim(2) == y.dim(2) && x.dim(3) == y.dim(3) &&
           begin[1] % block == 0 && y.dim(1) % block == 0;
  }

  // Unless there is a kernel of ours, which is for convolutions so small that preparing a library's
  // call takes longer than they do, or such as the library has no kernel in blocks for. Where an
  // image of theirs comes in blocks, though, to reorder it would take longer still.
  bool WantsBlocks(const Node& node, bool makes_image) const {
    const auto any = [&](const auto& is) { return std::ranges::any_of(node.inputs, is); };
    if (!makes_image && !any([&](ValueId v) { return IsImage(v); })) return false;
    if (any([&](ValueId v) { return IsImage(v) && LayoutOf(v) == layout_; })) return true;
    const std::vector<ValueSpec> inputs = graph_.specs(node.inputs),
                                 outputs = graph_.specs(node.outputs);
    const kernels::NodeSpec spec{node.op->type, node.attributes, inputs, outputs};
    return selection_ != kernels::Selection::kFastest || !kernels::TakesVectors(spec);
  }

  void Rewrite(const Node& node) {
    const Images images = ImagesOf(node);
    if (!TakesBlocks(node, images)) {
      std::vector<ValueId> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(In(Layout::kRowMajor, id));
      rewriter_.Add(node, node.attributes, inputs);
      return;
    }
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool in_blocks =
          std::ranges::find(images.inputs, i) != images.inputs.end() && IsImage(node.inputs[i]);
      inputs.push_back(In(in_blocks ? layout_ : Layout::kRowMajor, node.inputs[i]));
    }
    const Attributes attributes =
        images.output ? node.attributes.With(kLayoutAttribute, static_cast<int64_t>(layout_))
                      : node.attributes;
    rewriter_.Add(node, attributes, inputs);
    took_blocks_ = true;
  }

  // Whether the node is to work in blocks: it wants to, or (unless it is a convolution, which
  // knows) one of its images comes in them, and a kernel does it.
  bool TakesBlocks(const Node& node, const Images& images) const {
    const bool comes_so = std::ranges::any_of(
        images.inputs, [&](size_t i) { return LayoutOf(node.inputs[i]) == layout_; });
    // Convolutions take any mixture; of the others' images all must be able to lie in blocks.
    const bool mixes = node.op->type.starts_with("conv2d");
    if (!images.wants_blocks && (mixes || !comes_so)) return false;
    std::vector<ValueSpec> inputs = graph_.specs(node.inputs), outputs = graph_.specs(node.outputs);
    for (const size_t i : images.inputs) {
      const bool single_pixel = inputs[i].shape.Product(2, 4) == 1;
      if (IsImage(inputs[i])) {
        inputs[i].layout = layout_;
      } else if (!mixes && !single_pixel) {
        return false;
      }
    }
    if (images.output) outputs.front().layout = layout_;
    const kernels::NodeSpec spec{node.op->type, node.attributes, inputs, outputs};
    return kernels::Prepare(spec, selection_) != nullptr;
  }

  const Graph& graph_;
  const Layout layout_;
  const kernels::Selection selection_;
  Rewriter rewriter_;
  std::vector<ValueId> reordered_;  // by old value: it in the other layout
  bool took_blocks_ = false;        // a node before
};

}  // namespace

Graph ChooseLayouts(const Graph& graph, Layout layout, kernels::Selection selection) {
  if (layout == Layout::kRowMajor) return graph;
  return LayoutChoice(graph, layout, selection).Run();
}

}  // namespace ringmaster::graph

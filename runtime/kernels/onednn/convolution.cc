// Convolutions in the layouts that oneDNN likes best, with reorders around them where the node's
// images lie otherwise.
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

constexpr auto kAlgorithm = algorithm::convolution_direct;

// The node's geometry as oneDNN has it: dilations count the places left out between two taps.
struct Geometry {
  explicit Geometry(const Attributes& attributes)
      : stride(attributes.Ints("stride")),
        padding(attributes.Ints("padding")),
        dilation(attributes.Ints("dilation")),
        groups(attributes.Int("groups")) {
    for (int64_t& d : dilation) --d;
  }

  // The weights' shape with an axis of groups before the others, where there are several.
  tensor::Shape Grouped(const tensor::Shape& weight) const {
    if (groups == 1) return weight;
    return {groups, weight.dim(0) / groups, weight.dim(1), weight.dim(2), weight.dim(3)};
  }

  memory::dims stride, padding, dilation;
  int64_t groups;
};

dnnl::convolution_forward::primitive_desc ForwardDesc(const tensor::Shape& x,
                                                      const tensor::Shape& weight,
                                                      const tensor::Shape* bias,
                                                      const tensor::Shape& y, const Geometry& g) {
  using Forward = dnnl::convolution_forward;
  constexpr auto kKind = prop_kind::forward_training;
  const auto desc =
      bias != nullptr
          ? Forward::desc(kKind, kAlgorithm, Any(x), Any(g.Grouped(weight)), Plain(*bias), Any(y),
                          g.stride, g.dilation, g.padding, g.padding)
          : Forward::desc(kKind, kAlgorithm, Any(x), Any(g.Grouped(weight)), Any(y), g.stride,
                          g.dilation, g.padding, g.padding);
  return {desc, UserScratchpad(), CpuEngine()};
}

}  // namespace

std::unique_ptr<Primitive> Conv2d(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const tensor::Shape &x = node.inputs[0].shape, &weight = node.inputs[1].shape,
                        &y = node.outputs[0].shape;
    const tensor::Shape* bias = node.inputs.size() == 3 ? &node.inputs[2].shape : nullptr;
    const Geometry g(node.attributes);
    const auto pd = ForwardDesc(x, weight, bias, y, g);
    const int src = p.ReorderedImage(p.Input(0, Stored(node.inputs[0])), pd.src_desc());
    const int weights = p.Reordered(p.Input(1, Plain(g.Grouped(weight))), pd.weights_desc());
    const auto stored = Stored(node.outputs[0]);
    const int out = p.Output(0, stored);
    const int dst = pd.dst_desc() == stored ? out : p.Scratch(pd.dst_desc());
    if (bias != nullptr) {
      const int b = p.Input(2, Plain(*bias));
      p.Compute<dnnl::convolution_forward>(pd, {{DNNL_ARG_SRC, src},
                                                {DNNL_ARG_WEIGHTS, weights},
                                                {DNNL_ARG_BIAS, b},
                                                {DNNL_ARG_DST, dst}});
    } else {
      p.Compute<dnnl::convolution_forward>(
          pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
    }
    if (node.attributes.Int("relu") != 0) p.KeepPositive(dst);
    p.FinishImage(dst, out);
  });
}

// (dy, weight) -> dx
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node) {
  if (node.inputs.size() != 2) return nullptr;
  return Build(node, [&](Program& p) {
    const tensor::Shape &dy = node.inputs[0].shape, &weight = node.inputs[1].shape,
                        &dx = node.outputs[0].shape;
    const Geometry g(node.attributes);
    using Backward = dnnl::convolution_backward_data;
    const Backward::desc desc(kAlgorithm, Any(dx), Any(g.Grouped(weight)), Any(dy), g.stride,
                              g.dilation, g.padding, g.padding);
    const Backward::primitive_desc pd(desc, UserScratchpad(), CpuEngine(),
                                      ForwardDesc(dx, weight, nullptr, dy, g));
    const int diff_dst = p.ReorderedImage(p.Input(0, Stored(node.inputs[0])), pd.diff_dst_desc());
    const int weights = p.Reordered(p.Input(1, Plain(g.Grouped(weight))), pd.weights_desc());
    const auto stored = Stored(node.outputs[0]);
    const int out = p.Output(0, stored);
    const int diff_src = pd.diff_src_desc() == stored ? out : p.Scratch(pd.diff_src_desc());
    p.Compute<Backward>(pd, {{DNNL_ARG_DIFF_DST, diff_dst},
                             {DNNL_ARG_WEIGHTS, weights},
                             {DNNL_ARG_DIFF_SRC, diff_src}});
    p.FinishImage(diff_src, out);
  });
}

// (x, dy) -> dweight
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const tensor::Shape &x = node.inputs[0].shape, &dy = node.inputs[1].shape,
                        &dw = node.outputs[0].shape;
    const Geometry g(node.attributes);
    using Backward = dnnl::convolution_backward_weights;
    const Backward::desc desc(kAlgorithm, Any(x), Any(g.Grouped(dw)), Any(dy), g.stride, g.dilation,
                              g.padding, g.padding);
    const Backward::primitive_desc pd(desc, UserScratchpad(), CpuEngine(),
                                      ForwardDesc(x, dw, nullptr, dy, g));
    const int src = p.ReorderedImage(p.Input(0, Stored(node.inputs[0])), pd.src_desc());
    const int diff_dst = p.ReorderedImage(p.Input(1, Stored(node.inputs[1])), pd.diff_dst_desc());
    const auto plain = Plain(g.Grouped(dw));
    const int out = p.Output(0, plain);
    const int diff_weights =
        pd.diff_weights_desc() == plain ? out : p.Scratch(pd.diff_weights_desc());
    p.Compute<Backward>(pd, {{DNNL_ARG_SRC, src},
                             {DNNL_ARG_DIFF_DST, diff_dst},
                             {DNNL_ARG_DIFF_WEIGHTS, diff_weights}});
    if (diff_weights != out) p.Reorder(diff_weights, out);
  });
}

}  // namespace ringmaster::kernels::onednn

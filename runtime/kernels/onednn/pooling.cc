#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

// Means alone: its max pooling loses what is no number.
dnnl::pooling_forward::primitive_desc ForwardDesc(algorithm kind, const memory::desc& x,
                                                  const memory::desc& y,
                                                  const Attributes& attributes) {
  const memory::dims window = attributes.Ints("window"), stride = attributes.Ints("stride"),
                     padding = attributes.Ints("padding");
  const dnnl::pooling_forward::desc desc(prop_kind::forward_inference, kind, x, y, stride, window,
                                         padding, padding);
  return {desc, UserScratchpad(), CpuEngine()};
}

// An image of a single pixel lies alike in all layouts, and is called what the other image is.
memory::desc StoredBeside(const tensor::ValueSpec& spec, const tensor::ValueSpec& other) {
  tensor::ValueSpec same = spec;
  if (spec.shape.Product(2, 4) == 1) same.layout = other.layout;
  return Stored(same);
}

algorithm AverageOf(const NodeSpec& node) {
  return node.attributes.Int("count_padding") != 0 ? algorithm::pooling_avg_include_padding
                                                   : algorithm::pooling_avg_exclude_padding;
}

}  // namespace

std::unique_ptr<Primitive> AvgPool2d(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const memory::desc x = Stored(node.inputs[0]),
                       y = StoredBeside(node.outputs[0], node.inputs[0]);
    const int src = p.Input(0, x), dst = p.Output(0, y);
    p.Compute<dnnl::pooling_forward>(ForwardDesc(AverageOf(node), x, y, node.attributes),
                                     {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
  });
}

std::unique_ptr<Primitive> AvgPool2dGrad(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const algorithm kind = AverageOf(node);
    const memory::desc dx = Stored(node.outputs[0]),
                       dy = StoredBeside(node.inputs[0], node.outputs[0]);
    const memory::dims window = node.attributes.Ints("window"),
                       stride = node.attributes.Ints("stride"),
                       padding = node.attributes.Ints("padding");
    using Backward = dnnl::pooling_backward;
    const Backward::desc desc(kind, dx, dy, stride, window, padding, padding);
    const Backward::primitive_desc pd(desc, UserScratchpad(), CpuEngine(),
                                      ForwardDesc(kind, dx, dy, node.attributes));
    const int diff_dst = p.Input(0, dy), diff_src = p.Output(0, dx);
    p.Compute<Backward>(pd, {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}});
  });
}

}  // namespace ringmaster::kernels::onednn

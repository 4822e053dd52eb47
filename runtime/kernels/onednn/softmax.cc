#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {
namespace {

constexpr int kClasses = 1;  // the axis of the rows below

// All axes but the last as rows.
dnnl::memory::desc RowsOf(const NodeSpec& node) {
  const tensor::Shape& shape = node.outputs[0].shape;
  return Plain({shape.Product(0, shape.rank() - 1), shape.dim(-1)});
}

dnnl::softmax_forward::primitive_desc ForwardDesc(const dnnl::memory::desc& rows) {
  return {dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, rows, kClasses),
          UserScratchpad(), CpuEngine()};
}

}  // namespace

std::unique_ptr<Primitive> Softmax(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    const auto rows = RowsOf(node);
    const int src = p.Input(0, rows), dst = p.Output(0, rows);
    p.Compute<dnnl::softmax_forward>(ForwardDesc(rows), {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
  });
}

std::unique_ptr<Primitive> SoftmaxGrad(const NodeSpec& node) {
  return Build(node, [&](Program& p) {
    using Grad = dnnl::softmax_backward;
    const auto rows = RowsOf(node);
    const Grad::primitive_desc pd(Grad::desc(rows, rows, kClasses), UserScratchpad(), CpuEngine(),
                                  ForwardDesc(rows));
    const int dst = p.Input(0, rows), diff_dst = p.Input(1, rows), diff_src = p.Output(0, rows);
    p.Compute<Grad>(
        pd, {{DNNL_ARG_DST, dst}, {DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}});
  });
}

}  // namespace ringmaster::kernels::onednn

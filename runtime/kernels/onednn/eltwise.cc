// Activations that need an exponential, which oneDNN computes in whole vectors, in any layout that
// operands and result share. (ReLU is bound by memory and stays with our own loops.)
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::algorithm;

dnnl::eltwise_forward::primitive_desc ForwardDesc(algorithm kind, const dnnl::memory::desc& flat) {
  return {dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, kind, flat, 0.f, 0.f),
          UserScratchpad(), CpuEngine()};
}

dnnl::memory::desc Flat(const NodeSpec& node) {
  return Plain({node.outputs[0].shape.elements()});
}

std::unique_ptr<Primitive> Forward(const NodeSpec& node, algorithm kind) {
  if (!LieAlike(node)) return nullptr;
  return Build(node, [&](Program& p) {
    const auto flat = Flat(node);
    const int src = p.Input(0, flat), dst = p.Output(0, flat);
    p.Compute<dnnl::eltwise_forward>(ForwardDesc(kind, flat),
                                     {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
  });
}

// `saved` says what input 0 is: DNNL_ARG_SRC or DNNL_ARG_DST of the forward pass.
std::unique_ptr<Primitive> Backward(const NodeSpec& node, algorithm kind, int saved) {
  if (!LieAlike(node)) return nullptr;
  return Build(node, [&](Program& p) {
    using Grad = dnnl::eltwise_backward;
    const auto flat = Flat(node);
    const Grad::primitive_desc pd(Grad::desc(kind, flat, flat, 0.f, 0.f), UserScratchpad(),
                                  CpuEngine(), ForwardDesc(kind, flat));
    const int kept = p.Input(0, flat), diff_dst = p.Input(1, flat), diff_src = p.Output(0, flat);
    p.Compute<Grad>(pd,
                    {{saved, kept}, {DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}});
  });
}

}  // namespace

std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node) {
  return Forward(node, algorithm::eltwise_gelu_erf);
}
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_gelu_erf, DNNL_ARG_SRC);
}
std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return Forward(node, algorithm::eltwise_gelu_tanh);
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_gelu_tanh, DNNL_ARG_SRC);
}
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node) {
  return Forward(node, algorithm::eltwise_logistic);
}
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_logistic_use_dst_for_bwd, DNNL_ARG_DST);
}
std::unique_ptr<Primitive> Tanh(const NodeSpec& node) {
  return Forward(node, algorithm::eltwise_tanh);
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST);
}

}  // namespace ringmaster::kernels::onednn

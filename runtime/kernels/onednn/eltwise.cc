// Activations that need an exponential, where ours do not fit or oneDNN's are asked for: in whole
// vectors, in any layout that operands and result share. (ReLU is bound by memory and stays with
// our own loops.)
#include "runtime/kernels/onednn/eltwise.h"

#include "common/check.h"
#include "runtime/kernels/onednn/onednn.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::algorithm;

// The factor is the swish's alone, which is SiLU with 1.
constexpr float kSwish = 1;

dnnl::eltwise_forward::primitive_desc ForwardDesc(algorithm kind, const dnnl::memory::desc& desc) {
  return {dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, kind, desc, kSwish, 0.f),
          UserScratchpad(), CpuEngine()};
}

algorithm KindOf(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return algorithm::eltwise_gelu_tanh;
    case Activation::kExactGelu:
      return algorithm::eltwise_gelu_erf;
    case Activation::kSigmoid:
      return algorithm::eltwise_logistic;
    case Activation::kSilu:
      return algorithm::eltwise_swish;
    case Activation::kTanh:
      return algorithm::eltwise_tanh;
    case Activation::kNone:
    case Activation::kRelu:
      break;
  }
  RM_CHECK(false, "not an activation by a primitive of oneDNN's");
  return algorithm::undef;
}

dnnl::memory::desc Flat(const NodeSpec& node) {
  return Plain({node.outputs[0].shape.elements()});
}

std::unique_ptr<Primitive> Forward(const NodeSpec& node, Activation activation) {
  if (!LieAlike(node)) return nullptr;
  return Build(node, [&](Program& p) {
    const auto flat = Flat(node);
    const int src = p.Input(0, flat), dst = p.Output(0, flat);
    AddActivation(p, activation, src, dst, flat);
  });
}

// `saved` says what input 0 is: DNNL_ARG_SRC or DNNL_ARG_DST of the forward pass.
std::unique_ptr<Primitive> Backward(const NodeSpec& node, algorithm kind, int saved) {
  if (!LieAlike(node)) return nullptr;
  return Build(node, [&](Program& p) {
    using Grad = dnnl::eltwise_backward;
    const auto flat = Flat(node);
    const Grad::primitive_desc pd(Grad::desc(kind, flat, flat, kSwish, 0.f), UserScratchpad(),
                                  CpuEngine(), ForwardDesc(kind, flat));
    const int kept = p.Input(0, flat), diff_dst = p.Input(1, flat), diff_src = p.Output(0, flat);
    p.Compute<Grad>(pd,
                    {{saved, kept}, {DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}});
  });
}

}  // namespace

void AddActivation(Program& program, Activation activation, int from, int to,
                   const dnnl::memory::desc& desc) {
  if (activation == Activation::kNone) return;
  if (activation == Activation::kRelu) {
    RM_CHECK(from == to, "a ReLU keeps the positive part in its place");
    return program.KeepPositive(to);
  }
  program.Compute<dnnl::eltwise_forward>(ForwardDesc(KindOf(activation), desc),
                                         {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
}

std::unique_ptr<Primitive> ExactGelu(const NodeSpec& node) {
  return Forward(node, Activation::kExactGelu);
}
std::unique_ptr<Primitive> ExactGeluGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_gelu_erf, DNNL_ARG_SRC);
}
std::unique_ptr<Primitive> Gelu(const NodeSpec& node) {
  return Forward(node, Activation::kGelu);
}
std::unique_ptr<Primitive> GeluGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_gelu_tanh, DNNL_ARG_SRC);
}
std::unique_ptr<Primitive> Sigmoid(const NodeSpec& node) {
  return Forward(node, Activation::kSigmoid);
}
std::unique_ptr<Primitive> SigmoidGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_logistic_use_dst_for_bwd, DNNL_ARG_DST);
}
std::unique_ptr<Primitive> Silu(const NodeSpec& node) {
  return Forward(node, Activation::kSilu);
}
std::unique_ptr<Primitive> SiluGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_swish, DNNL_ARG_SRC);
}
std::unique_ptr<Primitive> Tanh(const NodeSpec& node) {
  return Forward(node, Activation::kTanh);
}
std::unique_ptr<Primitive> TanhGrad(const NodeSpec& node) {
  return Backward(node, algorithm::eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST);
}

}  // namespace ringmaster::kernels::onednn

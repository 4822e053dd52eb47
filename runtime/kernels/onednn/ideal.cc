#include "runtime/kernels/ideal.h"

#include <algorithm>
#include <array>

#include "runtime/kernels/activation.h"
#include "runtime/kernels/onednn/onednn.h"
#include "runtime/kernels/onednn/program.h"

namespace ringmaster::kernels {
namespace {

struct Arithmetic {
  std::string_view op;
  decltype(Implementation::prepare) prepare;
};

constexpr std::array kArithmetic = {
    Arithmetic{"conv2d", onednn::Conv2d},
    Arithmetic{"conv2d_grad_input", onednn::Conv2dGradInput},
    Arithmetic{"conv2d_grad_weight", onednn::Conv2dGradWeight},
    Arithmetic{"linear", onednn::Linear},
    Arithmetic{"matmul", onednn::MatMul},
};

}  // namespace

std::unique_ptr<Primitive> PrepareIdeal(const NodeSpec& node) {
  const auto* found = std::ranges::find(kArithmetic, node.op, &Arithmetic::op);
  if (found == kArithmetic.end()) return nullptr;
  // Whether a ReLU's gradient comes with a convolution's, which oneDNN has not, is no arithmetic,
  // nor is an activation.
  const size_t operands = node.op == "conv2d_grad_input" ? 2 : node.inputs.size();
  const Activation activation = ActivationIn(node.attributes);
  const Attributes plain = activation == Activation::kNone
                               ? node.attributes
                               : node.attributes.With(OpOf(activation), int64_t{0});
  auto primitive = found->prepare({node.op, plain, node.inputs.first(operands), node.outputs});
  if (auto* program = dynamic_cast<onednn::Program*>(primitive.get()))
    program->KeepComputationsOnly();
  return primitive;
}

}  // namespace ringmaster::kernels

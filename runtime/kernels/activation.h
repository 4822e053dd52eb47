// The activations that a linear layer's kernel can take of its own result, and how a node says
// which: by an attribute with the name of the op that computes it by itself, "linear {tanh=1}".
#ifndef RINGMASTER_RUNTIME_KERNELS_ACTIVATION_H_
#define RINGMASTER_RUNTIME_KERNELS_ACTIVATION_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/kernels/attributes.h"

namespace ringmaster::kernels {

enum class Activation { kNone, kRelu, kGelu, kExactGelu, kSigmoid, kSilu, kTanh };

// By number; of kNone there is none.
inline constexpr std::array<std::string_view, 7> kActivationOps = {
    "", "relu", "gelu", "exact_gelu", "sigmoid", "silu", "tanh"};

inline std::string_view OpOf(Activation activation) {
  return kActivationOps[static_cast<size_t>(activation)];
}

// The first one whose op has that property; kNone where none has.
template <typename Predicate>
Activation FindActivation(const Predicate& has) {
  for (size_t i = 1; i < kActivationOps.size(); ++i) {
    if (has(kActivationOps[i])) return static_cast<Activation>(i);
  }
  return Activation::kNone;
}

// The one that this op computes; kNone for other ops.
inline Activation ActivationOfOp(std::string_view op) {
  return FindActivation([&](std::string_view one) { return one == op; });
}

// The one that a node's attributes ask for.
inline Activation ActivationIn(const Attributes& attributes) {
  return FindActivation([&](std::string_view one) { return attributes.Int(one) != 0; });
}

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_ACTIVATION_H_

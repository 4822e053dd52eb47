#include "runtime/kernels/vector/fit.h"

#include <algorithm>

namespace ringmaster::kernels::vector {

bool Fits(const NodeSpec& node) {
  const auto is_f32 = [](const tensor::ValueSpec& spec) {
    return spec.dtype == tensor::DType::kF32;
  };
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         std::ranges::all_of(node.inputs, is_f32) && std::ranges::all_of(node.outputs, is_f32);
}

}  // namespace ringmaster::kernels::vector

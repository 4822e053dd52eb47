#include "runtime/kernels/vector/fit.h"

#include <algorithm>
#include <span>

#include "runtime/kernels/vector/blocks.h"

namespace ringmaster::kernels::vector {
namespace {

bool HasVectors() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool AllF32(std::span<const tensor::ValueSpec> specs) {
  return std::ranges::all_of(
      specs, [](const tensor::ValueSpec& spec) { return spec.dtype == tensor::DType::kF32; });
}

}  // namespace

bool Fits(const NodeSpec& node) {
  return IsRowMajor(node) && FitsInAnyLayout(node);
}

bool FitsInAnyLayout(const NodeSpec& node) {
  return HasVectors() && AllF32(node.inputs) && AllF32(node.outputs);
}

bool FitsWithIndices(const NodeSpec& node) {
  return HasVectors() && IsRowMajor(node) && AllF32(node.inputs.first(1)) &&
         AllF32(node.inputs.subspan(2)) && AllF32(node.outputs);
}

bool LiesInBlocks(const NodeSpec& node) {
  const tensor::Layout layout = node.inputs[0].layout;
  const auto is_alike = [layout](const tensor::ValueSpec& spec) {
    return spec.shape.rank() != 4 || spec.layout == layout;
  };
  return layout != tensor::Layout::kRowMajor && FitsInAnyLayout(node) &&
         std::ranges::all_of(node.inputs, is_alike) && std::ranges::all_of(node.outputs, is_alike);
}

}  // namespace ringmaster::kernels::vector

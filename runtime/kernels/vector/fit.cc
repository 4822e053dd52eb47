#include "runtime/kernels/vector/fit.h"

#include <algorithm>
#include <span>

#include "runtime/device/vectors.h"
#include "runtime/kernels/vector/blocks.h"

namespace ringmaster::kernels::vector {
namespace {

bool HasVectors() {
  return device::MayUse(device::Vectors::kAvx2);
}

bool AllF32(std::span<const tensor::ValueSpec> specs) {
  return std::ranges::all_of(
      specs, [](const tensor::ValueSpec& spec) { return spec.dtype == tensor::DType::kF32; });
}

bool AllF32OrTaps(const NodeSpec& node) {
  const auto fits = [](const tensor::ValueSpec& spec) {
    return spec.dtype == tensor::DType::kF32 ||
           (spec.dtype == tensor::DType::kU8 && spec.shape.rank() == 1);
  };
  return std::ranges::all_of(node.inputs, fits) && std::ranges::all_of(node.outputs, fits);
}

}  // namespace

bool Fits(const NodeSpec& node) {
  return IsRowMajor(node) && FitsInAnyLayout(node);
}

bool FitsInAnyLayout(const NodeSpec& node) {
  return HasVectors() && AllF32(node.inputs) && AllF32(node.outputs);
}

bool FitsAlike(const NodeSpec& node) {
  const auto is_like = [&](const tensor::ValueSpec& spec) { return spec == node.outputs[0]; };
  return FitsInAnyLayout(node) && std::ranges::all_of(node.inputs, is_like);
}

bool FitsWithIndices(const NodeSpec& node) {
  return HasVectors() && IsRowMajor(node) && AllF32(node.inputs.first(1)) &&
         AllF32(node.inputs.subspan(2)) && AllF32(node.outputs);
}

bool FitsWithSums(const NodeSpec& node) {
  const auto fits = [](const tensor::ValueSpec& spec) {
    return spec.dtype == tensor::DType::kF32 ||
           (spec.dtype == tensor::DType::kF64 && spec.shape.rank() == 1);
  };
  return HasVectors() && node.inputs[0].dtype == tensor::DType::kF32 &&
         std::ranges::all_of(node.inputs, fits) && std::ranges::all_of(node.outputs, fits);
}

bool HasBlocksOnly(const NodeSpec& node) {
  const tensor::Layout layout = node.inputs[0].layout;
  const auto is_alike = [layout](const tensor::ValueSpec& spec) {
    return spec.shape.rank() != 4 || spec.layout == layout;
  };
  return layout != tensor::Layout::kRowMajor && std::ranges::all_of(node.inputs, is_alike) &&
         std::ranges::all_of(node.outputs, is_alike);
}

bool FitsWithTaps(const NodeSpec& node) {
  return IsRowMajor(node) && HasVectors() && AllF32OrTaps(node);
}

bool LiesInBlocksWithTaps(const NodeSpec& node) {
  return HasBlocksOnly(node) && HasVectors() && AllF32OrTaps(node);
}

bool WalksSixteen(const tensor::ValueSpec& image) {
  constexpr int64_t kSixteen = 16;
  return image.layout == tensor::Layout::kBlocks16 &&
         image.shape.dim(1) / kSixteen >= device::ThreadCount();
}

bool LiesInBlocks(const NodeSpec& node) {
  return FitsInAnyLayout(node) && HasBlocksOnly(node);
}

}  // namespace ringmaster::kernels::vector

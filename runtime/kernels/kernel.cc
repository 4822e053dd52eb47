#include "runtime/kernels/kernel.h"

#include <algorithm>
#include <array>

#include "runtime/device/vectors.h"

namespace ringmaster::kernels {
namespace {

bool Allowed(Family family, Selection selection) {
  switch (family) {
    case Family::kReference:
      return true;
    case Family::kOneDnn:
      return selection != Selection::kReference;
    case Family::kVector:
      return selection == Selection::kFastest;
  }
  return false;
}

// Ops whose reference kernels see memory only, as long as all of it lies alike: what they do to one
// place they do to all, or they move whole blocks of channels.
constexpr std::array<std::string_view, 7> kForAnyLayout = {"add",   "concat",    "copy", "relu",
                                                           "scale", "relu_grad", "slice"};

bool ReferenceTakes(const NodeSpec& node) {
  if (IsRowMajor(node) || node.op == "reorder") return true;
  return LieAlike(node) && std::ranges::find(kForAnyLayout, node.op) != kForAnyLayout.end();
}

}  // namespace

bool LieAlike(const NodeSpec& node) {
  const auto like_output = [&](const tensor::ValueSpec& spec) {
    return spec.layout == node.outputs.front().layout;
  };
  return std::ranges::all_of(node.inputs, like_output) &&
         std::ranges::all_of(node.outputs, like_output);
}

bool IsRowMajor(const NodeSpec& node) {
  const auto is = [](const tensor::ValueSpec& spec) {
    return spec.layout == tensor::Layout::kRowMajor;
  };
  return std::ranges::all_of(node.inputs, is) && std::ranges::all_of(node.outputs, is);
}

tensor::Layout FastestImageLayout() {
  if (device::MayUse(device::Vectors::kAvx512)) return tensor::Layout::kBlocks16;
  if (device::MayUse(device::Vectors::kAvx2)) return tensor::Layout::kBlocks8;
  return tensor::Layout::kRowMajor;
}

std::unique_ptr<Primitive> Prepare(const NodeSpec& node, Selection selection) {
  for (const Implementation& implementation : ImplementationsOf(node.op)) {
    if (!Allowed(implementation.family, selection)) continue;
    if (implementation.family == Family::kReference && !ReferenceTakes(node)) continue;
    if (auto primitive = implementation.prepare(node)) return primitive;
  }
  return nullptr;
}

bool TakesVectors(const NodeSpec& node) {
  return std::ranges::any_of(ImplementationsOf(node.op), [&](const Implementation& one) {
    return one.family == Family::kVector && one.prepare(node) != nullptr;
  });
}

bool ParseSelection(std::string_view text, Selection* selection) {
  if (text.empty() || text == "fastest") {
    *selection = Selection::kFastest;
  } else if (text == "reference") {
    *selection = Selection::kReference;
  } else if (text == "onednn") {
    *selection = Selection::kOneDnn;
  } else {
    return false;
  }
  return true;
}

}  // namespace ringmaster::kernels

#include "runtime/kernels/kernel.h"

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

}  // namespace

std::unique_ptr<Primitive> Prepare(const NodeSpec& node, Selection selection) {
  for (const Implementation& implementation : ImplementationsOf(node.op)) {
    if (!Allowed(implementation.family, selection)) continue;
    if (auto primitive = implementation.prepare(node)) return primitive;
  }
  return nullptr;
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

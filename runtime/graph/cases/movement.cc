// Cases of ops that only move elements.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId TransposePair(CaseBuilder& b) {
  const int64_t axes[] = {1, 0};
  return Transpose(b.graph(), b.Var({37, 21}), axes);
}
ValueId TransposeHeads(CaseBuilder& b) {
  const int64_t axes[] = {0, 2, 1, 3};
  return Transpose(b.graph(), b.Var({2, 5, 3, 4}), axes);
}
ValueId TransposeAround(CaseBuilder& b) {
  const int64_t axes[] = {2, 0, 1};
  return Transpose(b.graph(), b.Var({3, 4, 5}), axes);
}
ValueId ReshapeCase(CaseBuilder& b) {
  return Reshape(b.graph(), Tanh(b.graph(), b.Var({6, 4})), {2, 3, 4});
}
ValueId FlattenCase(CaseBuilder& b) {
  return Flatten(b.graph(), Relu(b.graph(), b.Var({2, 3, 2, 2})));
}
ValueId ConcatChannels(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({2, 3, 2, 2}), b.Var({2, 1, 2, 2}), b.Var({2, 4, 2, 2})};
  return Concat(b.graph(), inputs, 1);
}
ValueId ConcatLast(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({3, 2}), b.Fixed({3, 5})};
  return Concat(b.graph(), inputs, 1);
}
ValueId ConcatFirst(CaseBuilder& b) {
  const ValueId inputs[] = {b.Var({3, 2, 2}), b.Var({1, 2, 2})};
  return Concat(b.graph(), inputs, 0);
}
ValueId ConcatItself(CaseBuilder& b) {
  const ValueId x = b.Var({2, 3});
  const ValueId inputs[] = {x, x};
  return Concat(b.graph(), inputs, 0);
}
ValueId SliceInner(CaseBuilder& b) {
  const int64_t begin[] = {1, 0, 2};
  return Slice(b.graph(), b.Var({3, 4, 5}), begin, {2, 4, 3});
}
ValueId SliceMiddle(CaseBuilder& b) {
  const int64_t begin[] = {0, 2, 0, 0};
  return Slice(b.graph(), b.Var({2, 5, 3, 2}), begin, {2, 2, 3, 2});
}
ValueId SliceEverywhere(CaseBuilder& b) {
  const int64_t begin[] = {1, 1, 1, 1};
  return Slice(b.graph(), b.Var({3, 4, 5, 4}), begin, {1, 2, 3, 2});
}
ValueId PadImages(CaseBuilder& b) {
  const int64_t before[] = {0, 0, 1, 2}, after[] = {0, 0, 3, 0};
  return Pad(b.graph(), b.Var({2, 3, 2, 3}), before, after);
}
ValueId PadFirst(CaseBuilder& b) {
  const int64_t before[] = {2, 0}, after[] = {1, 0};
  return Pad(b.graph(), b.Var({2, 3}), before, after);
}
// Nodes of which the passes leave one.
ValueId NothingButATurn(CaseBuilder& b) {
  Graph& g = b.graph();
  const int64_t turn[] = {1, 2, 0}, zeros[] = {0, 0, 0};
  ValueId x = Dropout(g, Scale(g, b.Var({6, 3, 4}), 1.0), 0.0);
  x = Transpose(g, Transpose(g, Transpose(g, x, turn), turn), turn);
  x = Pad(g, Slice(g, Reshape(g, Flatten(g, x), {6, 4, 3}), zeros, {6, 4, 3}), zeros, zeros);
  const ValueId ones = Scale(g, Constant(g, 0.5, {{3}, b.dtype()}), 2.0);
  return Transpose(g, Multiply(g, Concat(g, {&x, 1}, 2), ones), turn);
}

}  // namespace

std::vector<Case> MovementCases() {
  return {
      {"TransposePair", TransposePair},
      {"TransposeHeads", TransposeHeads},
      {"TransposeAround", TransposeAround},
      {"Reshape", ReshapeCase},
      {"Flatten", FlattenCase},
      {"ConcatChannels", ConcatChannels},
      {"ConcatLast", ConcatLast},
      {"ConcatFirst", ConcatFirst},
      {"ConcatItself", ConcatItself},
      {"SliceInner", SliceInner},
      {"SliceMiddle", SliceMiddle},
      {"SliceEverywhere", SliceEverywhere},
      {"PadImages", PadImages},
      {"PadFirst", PadFirst},
      {"NothingButATurn", NothingButATurn},
  };
}

}  // namespace ringmaster::graph

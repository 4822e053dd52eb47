// Cases of matrix products and linear layers.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId LinearPlain(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({5, 7}), b.Var({3, 7}), b.Var({3}));
}
ValueId LinearOfSequences(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({2, 4, 6}), b.Var({8, 6}), b.Var({8}));
}
ValueId LinearWithoutBias(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({33, 70}), b.Var({65, 70}), ValueId{});
}
// Whole tiles and what is left of them, in both directions.
ValueId LinearWide(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({50, 30}), b.Var({40, 30}), b.Var({40}));
}
ValueId MatMulWideA(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({19, 40}), b.Var({19, 33}), true, false);
}
ValueId MatMulPlain(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({4, 5}), b.Var({5, 3}));
}
ValueId MatMulOfSequences(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({2, 3, 5}), b.Var({5, 4}));
}
ValueId MatMulA(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({2, 3, 4}), b.Var({6, 5}), true, false);
}
ValueId MatMulB(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({4, 5}), b.Var({3, 5}), false, true);
}
ValueId MatMulBoth(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({5, 4}), b.Var({3, 5}), true, true);
}
ValueId BatchMatMulPlain(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({2, 3, 4, 5}), b.Var({2, 3, 5, 6}));
}
ValueId BatchMatMulOne(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({4, 5}), b.Var({5, 3}));
}
ValueId BatchMatMulA(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 5, 4}), b.Var({3, 5, 6}), true, false);
}
ValueId BatchMatMulB(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 4, 5}), b.Var({3, 6, 5}), false, true);
}
ValueId BatchMatMulBoth(CaseBuilder& b) {
  return BatchMatMul(b.graph(), b.Var({3, 5, 4}), b.Var({3, 6, 5}), true, true);
}
ValueId LinearThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearPlain(b));
}
ValueId LinearWideThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearWide(b));
}
ValueId LinearWithoutBiasThenRelu(CaseBuilder& b) {
  return Relu(b.graph(), LinearWithoutBias(b));
}
ValueId LinearThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearPlain(b));
}
ValueId LinearWideThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearWide(b));
}
ValueId LinearWithoutBiasThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearWithoutBias(b));
}
// Enough for a matrix unit, forward and both gradients.
ValueId LinearLarge(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({130, 256}), b.Var({192, 256}), b.Var({192}));
}
ValueId LinearLargeThenGelu(CaseBuilder& b) {
  return Gelu(b.graph(), LinearLarge(b));
}
ValueId MatMulLarge(CaseBuilder& b) {
  return MatMul(b.graph(), b.Var({160, 192}), b.Var({160, 224}), true, false);
}

}  // namespace

std::vector<Case> LinearCases() {
  return {
      {"Linear", LinearPlain},
      {"LinearOfSequences", LinearOfSequences},
      {"LinearWithoutBias", LinearWithoutBias},
      {"LinearWide", LinearWide},
      {"MatMul", MatMulPlain},
      {"MatMulWideTransposedA", MatMulWideA},
      {"MatMulOfSequences", MatMulOfSequences},
      {"MatMulTransposedA", MatMulA},
      {"MatMulTransposedB", MatMulB},
      {"MatMulTransposedBoth", MatMulBoth},
      {"BatchMatMul", BatchMatMulPlain},
      {"BatchMatMulOfOnePair", BatchMatMulOne},
      {"BatchMatMulTransposedA", BatchMatMulA},
      {"BatchMatMulTransposedB", BatchMatMulB},
      {"BatchMatMulTransposedBoth", BatchMatMulBoth},
      {"LinearThenRelu", LinearThenRelu},
      {"LinearWideThenRelu", LinearWideThenRelu},
      {"LinearWithoutBiasThenRelu", LinearWithoutBiasThenRelu},
      {"LinearThenGelu", LinearThenGelu},
      {"LinearWideThenGelu", LinearWideThenGelu},
      {"LinearWithoutBiasThenGelu", LinearWithoutBiasThenGelu},
      {"LinearLarge", LinearLarge, true},
      {"LinearLargeThenGelu", LinearLargeThenGelu, true},
      {"MatMulLarge", MatMulLarge, true},
  };
}

}  // namespace ringmaster::graph

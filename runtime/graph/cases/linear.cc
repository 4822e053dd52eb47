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
using ActivationFunction = ValueId (*)(Graph& g, ValueId x, std::string_view name);

template <ValueId (*kLinear)(CaseBuilder& b), ActivationFunction kActivation>
ValueId Then(CaseBuilder& b) {
  return kActivation(b.graph(), kLinear(b), "");
}
// Enough for a matrix unit, forward and both gradients.
ValueId LinearLarge(CaseBuilder& b) {
  return Linear(b.graph(), b.Var({130, 256}), b.Var({192, 256}), b.Var({192}));
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
      {"LinearThenRelu", Then<LinearPlain, Relu>},
      {"LinearWideThenRelu", Then<LinearWide, Relu>},
      {"LinearWithoutBiasThenRelu", Then<LinearWithoutBias, Relu>},
      {"LinearThenGelu", Then<LinearPlain, Gelu>},
      {"LinearWideThenGelu", Then<LinearWide, Gelu>},
      {"LinearWithoutBiasThenGelu", Then<LinearWithoutBias, Gelu>},
      {"LinearThenExactGelu", Then<LinearPlain, ExactGelu>},
      {"LinearWideThenExactGelu", Then<LinearWide, ExactGelu>},
      {"LinearWithoutBiasThenSigmoid", Then<LinearWithoutBias, Sigmoid>},
      {"LinearWideThenSigmoid", Then<LinearWide, Sigmoid>},
      {"LinearThenSilu", Then<LinearPlain, Silu>},
      {"LinearWideThenSilu", Then<LinearWide, Silu>},
      {"LinearOfSequencesThenTanh", Then<LinearOfSequences, Tanh>},
      {"LinearWideThenTanh", Then<LinearWide, Tanh>},
      {"LinearLarge", LinearLarge, true},
      {"LinearLargeThenGelu", Then<LinearLarge, Gelu>, true},
      {"LinearLargeThenTanh", Then<LinearLarge, Tanh>, true},
      {"MatMulLarge", MatMulLarge, true},
  };
}

}  // namespace ringmaster::graph

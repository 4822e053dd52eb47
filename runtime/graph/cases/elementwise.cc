// Cases of ops that look at each element alone, or at two that broadcasting brings together.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId ReluCase(CaseBuilder& b) {
  return Relu(b.graph(), b.Var({5, 9}));
}
ValueId GeluCase(CaseBuilder& b) {
  return Gelu(b.graph(), b.Var({5, 9}));
}
ValueId ExactGeluCase(CaseBuilder& b) {
  return ExactGelu(b.graph(), b.Var({5, 9}));
}
ValueId TanhCase(CaseBuilder& b) {
  return Tanh(b.graph(), b.Var({5, 9}));
}
ValueId SigmoidCase(CaseBuilder& b) {
  return Sigmoid(b.graph(), b.Var({5, 9}));
}
ValueId SiluCase(CaseBuilder& b) {
  return Silu(b.graph(), b.Var({5, 9}));
}
ValueId MultiplySame(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId MultiplyRow(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 5}), b.Var({5}));
}
ValueId MultiplyColumn(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({3, 4, 5}), b.Var({4, 1}));
}
ValueId SubtractSame(CaseBuilder& b) {
  return Subtract(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId SubtractColumn(CaseBuilder& b) {
  return Subtract(b.graph(), b.Var({3, 4, 5}), b.Var({4, 1}));
}
ValueId DivideSame(CaseBuilder& b) {
  return Divide(b.graph(), b.Var({3, 4, 9}), b.Var({3, 4, 9}));
}
ValueId DivideRow(CaseBuilder& b) {
  return Divide(b.graph(), b.Var({3, 4, 5}), b.Var({5}));
}
ValueId MultiplyItself(CaseBuilder& b) {
  const ValueId x = b.Var({4, 7});
  return Multiply(b.graph(), x, x);
}
ValueId ScaleCase(CaseBuilder& b) {
  return Scale(b.graph(), b.Var({5, 9}), -1.75);
}
ValueId DropoutCase(CaseBuilder& b) {
  return Dropout(b.graph(), b.Var({kCaseSamples, 3, 7}), 0.4);
}
// More than one draw of eight blocks, and a last one that is not whole.
ValueId DropoutWide(CaseBuilder& b) {
  return Dropout(b.graph(), b.Var({kCaseSamples, 5, 15}), 0.25);
}
ValueId AddSame(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 4}), b.Var({3, 4}));
}
ValueId AddRow(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4}), b.Var({2, 4}));
}
ValueId AddColumn(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4}), b.Var({3, 1, 1}));
}
ValueId AddMiddle(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 2, 4, 5}), b.Var({2, 1, 5}));
}
ValueId AddScalar(CaseBuilder& b) {
  return Add(b.graph(), b.Var({3, 4}), b.Var({}));
}
ValueId AddRowBefore(CaseBuilder& b) {
  return Add(b.graph(), b.Var({2, 4}), b.Var({3, 2, 4}));
}
ValueId AddColumnToRow(CaseBuilder& b) {
  return Add(b.graph(), b.Var({4, 1}), b.Var({3, 1, 5}));
}
ValueId SubtractRowBefore(CaseBuilder& b) {
  return Subtract(b.graph(), b.Var({5}), b.Var({3, 4, 5}));
}
ValueId MultiplyColumnByRow(CaseBuilder& b) {
  return Multiply(b.graph(), b.Var({4, 1}), b.Var({5}));
}
ValueId DivideColumnByImage(CaseBuilder& b) {
  return Divide(b.graph(), b.Var({4, 1}), b.Var({3, 4, 5}));
}
ValueId AddItself(CaseBuilder& b) {
  const ValueId x = b.Var({3, 4});
  return Add(b.graph(), x, x);
}

}  // namespace

std::vector<Case> ElementwiseCases() {
  return {
      {"Relu", ReluCase},
      {"Gelu", GeluCase},
      {"ExactGelu", ExactGeluCase},
      {"Tanh", TanhCase},
      {"Sigmoid", SigmoidCase},
      {"Silu", SiluCase},
      {"MultiplySame", MultiplySame},
      {"MultiplyRow", MultiplyRow},
      {"MultiplyColumn", MultiplyColumn},
      {"SubtractSame", SubtractSame},
      {"SubtractColumn", SubtractColumn},
      {"DivideSame", DivideSame},
      {"DivideRow", DivideRow},
      {"MultiplyItself", MultiplyItself},
      {"Scale", ScaleCase},
      {"Dropout", DropoutCase},
      {"DropoutWide", DropoutWide},
      {"AddSame", AddSame},
      {"AddRow", AddRow},
      {"AddColumn", AddColumn},
      {"AddMiddle", AddMiddle},
      {"AddScalar", AddScalar},
      {"AddItself", AddItself},
      {"AddRowBefore", AddRowBefore},
      {"AddColumnToRow", AddColumnToRow},
      {"SubtractRowBefore", SubtractRowBefore},
      {"MultiplyColumnByRow", MultiplyColumnByRow},
      {"DivideColumnByImage", DivideColumnByImage},
  };
}

}  // namespace ringmaster::graph

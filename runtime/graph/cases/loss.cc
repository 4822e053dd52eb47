// Cases of losses, of softmax and its logarithm.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId LossOfClasses(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10)).loss;
}
ValueId LossOfSequences(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({2, 5, 7}), b.Indices({2, 5}, 7)).loss;
}
// Eight rows at once, eight classes at once, and what is left of both.
ValueId LossOfManyRows(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({17, 19}), b.Indices({17}, 19), 0.1).loss;
}
ValueId LossOfManyClasses(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({5, 1003}), b.Indices({5}, 1003), 0.1).loss;
}
ValueId LossSmoothed(CaseBuilder& b) {
  return SoftmaxCrossEntropy(b.graph(), b.Var({6, 10}), b.Indices({6}, 10), 0.1).loss;
}
ValueId LossOfManyLabels(CaseBuilder& b) {
  return BinaryCrossEntropy(b.graph(), b.Var({5, 14}), b.Indices({5, 14}, 2)).loss;
}
ValueId SoftmaxCase(CaseBuilder& b) {
  return Softmax(b.graph(), b.Var({4, 3, 7}));
}
ValueId SoftmaxWide(CaseBuilder& b) {
  return Softmax(b.graph(), b.Var({3, 130}));
}
ValueId LogSoftmaxCase(CaseBuilder& b) {
  return LogSoftmax(b.graph(), b.Var({4, 3, 7}));
}
ValueId LogSoftmaxWide(CaseBuilder& b) {
  return LogSoftmax(b.graph(), b.Var({3, 130}));
}
ValueId NllCase(CaseBuilder& b) {
  return Nll(b.graph(), b.Var({4, 3, 7}), b.Indices({4, 3}, 7)).loss;
}
ValueId NllOfManyClasses(CaseBuilder& b) {
  return Nll(b.graph(), b.Var({9, 37}), b.Indices({9}, 37)).loss;
}
ValueId SquaredErrorCase(CaseBuilder& b) {
  return SquaredError(b.graph(), b.Var({4, 9}), b.Var({4, 9}));
}
ValueId MeanSquareCase(CaseBuilder& b) {
  return MeanSquare(b.graph(), b.Var({4, 3, 7}), b.Indices({4, 3}, 7)).loss;
}

}  // namespace

std::vector<Case> LossCases() {
  return {
      {"LossOfClasses", LossOfClasses},
      {"LossOfSequences", LossOfSequences},
      {"LossOfManyRows", LossOfManyRows},
      {"LossOfManyClasses", LossOfManyClasses},
      {"LossSmoothed", LossSmoothed},
      {"LossOfManyLabels", LossOfManyLabels},
      {"Softmax", SoftmaxCase},
      {"SoftmaxWide", SoftmaxWide},
      {"LogSoftmax", LogSoftmaxCase},
      {"LogSoftmaxWide", LogSoftmaxWide},
      {"Nll", NllCase},
      {"NllOfManyClasses", NllOfManyClasses},
      {"SquaredError", SquaredErrorCase},
      {"MeanSquare", MeanSquareCase},
  };
}

}  // namespace ringmaster::graph

// Cases of sums, means and the largest over axes.
#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {
namespace {

ValueId SumToRow(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({9, 130}), {130});
}
ValueId SumToChannels(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({3, 4, 5, 2}), {4, 1, 1});
}
ValueId SumToFirst(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({4, 3, 19}), {4, 1, 1});
}
ValueId SumToAlternating(CaseBuilder& b) {
  return SumTo(b.graph(), b.Var({3, 4, 5, 2}), {3, 1, 5, 1});
}
ValueId SumAllCase(CaseBuilder& b) {
  return SumAll(b.graph(), b.Var({6, 11}));
}
ValueId MeanOverRows(CaseBuilder& b) {
  const int64_t axes[] = {-1};
  return MeanOver(b.graph(), b.Var({3, 4, 9}), axes);
}
ValueId MeanOverImages(CaseBuilder& b) {
  const int64_t axes[] = {0, 2, 3};
  return MeanOver(b.graph(), b.Var({2, 3, 4, 5}), axes);
}
ValueId MaxOverRows(CaseBuilder& b) {
  const int64_t axes[] = {-1};
  return MaxOver(b.graph(), b.Distinct({3, 4, 19}), axes);
}
ValueId MaxOverMiddle(CaseBuilder& b) {
  const int64_t axes[] = {1, 2};
  return MaxOver(b.graph(), b.Distinct({2, 3, 4, 11}), axes);
}
ValueId MaxOverAlternating(CaseBuilder& b) {
  const int64_t axes[] = {0, 2};
  return MaxOver(b.graph(), b.Distinct({3, 4, 5, 2}), axes);
}
ValueId MaxOverAll(CaseBuilder& b) {
  const int64_t axes[] = {0, 1};
  return MaxOver(b.graph(), b.Distinct({3, 7}), axes);
}

}  // namespace

std::vector<Case> ReductionCases() {
  return {
      {"SumToRow", SumToRow},
      {"SumToChannels", SumToChannels},
      {"SumToFirst", SumToFirst},
      {"SumToAlternating", SumToAlternating},
      {"SumAll", SumAllCase},
      {"MeanOverRows", MeanOverRows},
      {"MeanOverImages", MeanOverImages},
      {"MaxOverRows", MaxOverRows},
      {"MaxOverMiddle", MaxOverMiddle},
      {"MaxOverAlternating", MaxOverAlternating},
      {"MaxOverAll", MaxOverAll},
  };
}

}  // namespace ringmaster::graph

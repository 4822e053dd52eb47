#include "runtime/graph/conformance_cases.h"

#include "runtime/graph/cases/cases.h"

namespace ringmaster::graph {

const std::vector<Case>& ConformanceCases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (const auto cases_of_a_kind :
         {ConvolutionCases, LinearCases, PoolingCases, ElementwiseCases, ReductionCases,
          MovementCases, NormalisationCases, SequenceCases, LossCases, NetworkCases}) {
      for (const Case& c : cases_of_a_kind()) all.push_back(c);
    }
    return all;
  }();
  return cases;
}

}  // namespace ringmaster::graph

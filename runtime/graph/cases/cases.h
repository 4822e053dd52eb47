// The conformance cases by kind of op, a file each. Internal to the list of all
// (conformance_cases.cc).
#ifndef RINGMASTER_RUNTIME_GRAPH_CASES_CASES_H_
#define RINGMASTER_RUNTIME_GRAPH_CASES_CASES_H_

#include <vector>

#include "runtime/graph/conformance_cases.h"

namespace ringmaster::graph {

std::vector<Case> ConvolutionCases();
std::vector<Case> LinearCases();
std::vector<Case> PoolingCases();
std::vector<Case> ElementwiseCases();
std::vector<Case> ReductionCases();
std::vector<Case> MovementCases();
std::vector<Case> NormalisationCases();
std::vector<Case> SequenceCases();
std::vector<Case> LossCases();
std::vector<Case> NetworkCases();

// What several kinds use.
inline constexpr Conv2dOptions kSame3{{1, 1}, {1, 1}};
inline constexpr PoolOptions kHalf{{2, 2}, {0, 0}};

// Batch norm of x with its own gamma and beta, by a shard's statistics or by those of all.
ValueId NormOf(CaseBuilder& b, ValueId x);
ValueId SynchronisedNormOf(CaseBuilder& b, ValueId x);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_CASES_CASES_H_

// The names of the algorithms, as settings, explanations and messages write them.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

enum class Algorithm : uint8_t {
  kAuto,             // no algorithm: the cost model chooses
  kDirect,           // each part straight to the rank that needs it (algorithms/direct*.h)
  kDoubling,         // recursive doubling (algorithms/doubling.h)
  kHalvingDoubling,  // recursive halving, then doubling (algorithms/halving_doubling.h)
  kRing,             // pipelined ring (algorithms/ring.h)
  kTree,             // binomial tree (algorithms/tree.h)
  kDoubleTree,       // two binary trees at once (algorithms/tree.h)
  kTwoLevel,         // inside the nodes, then between them (algorithms/two_level.h)
  kOneShot,          // everything to everybody (algorithms/one_shot.h)
};
inline constexpr size_t kAlgorithms = 9;

// "auto", "direct", "doubling", "halving-doubling", "ring", "tree", "double-tree", "two-level",
// "one-shot".
const char* NameOf(Algorithm algorithm);

// The other way. kInvalidArgument listing the names.
absl::StatusOr<Algorithm> ParseAlgorithm(std::string_view name);

// What RINGMASTER_COLLECTIVE_ALGORITHM says; kAuto where it is not set. Errors as ParseAlgorithm.
absl::StatusOr<Algorithm> AlgorithmFromEnvironment();

// The algorithms that an operation has, in the order in which explanations list them. Empty where
// there is only one way.
std::span<const Algorithm> AlgorithmsOf(OperationKind kind);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHM_H_

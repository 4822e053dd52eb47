// What a rank brings to an ordered sum, whichever schedule adds it.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_

#include <span>
#include <type_traits>

#include "runtime/collectives/algorithms/ownership.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/ordered_sum.h"

namespace ringmaster::collectives {

// This rank's part of a sum. Views.
template <typename T>
struct Contribution {
  SumOrder order = SumOrder::kTree;
  // Of this rank what it brings; of the others nothing yet, unless all ranks know who has what.
  Ownership& owners;
  bool knows_owners = false;
  // kTree: of the covering nodes of this rank's shards, in shard order; else one or none.
  std::span<const std::span<const T>> sums;

  int shards() const { return owners.shards(); }
};

// Whether a message of T may be added as it arrives. Blocks have an exponent of their own, of which
// a Combiner knows nothing.
template <typename T>
constexpr bool kCombines = !std::is_same_v<T, HalfBlock>;

// What adds it: the same bits as Add (add.h).
template <typename T>
requires kCombines<T> Combiner Adding() {
  return {Reduction::kSum, ElementTypeOf<T>()};
}

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_

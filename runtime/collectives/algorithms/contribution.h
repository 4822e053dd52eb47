// What a rank brings to an ordered sum, whichever schedule adds it.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_

#include <span>
#include <vector>

#include "runtime/collectives/ordered_sum.h"

namespace ringmaster::collectives {

// This rank's part of a sum.
template <typename T>
struct Contribution {
  int shards = 0;
  SumOrder order = SumOrder::kTree;
  std::vector<bool> owned;  // by shard
  std::vector<std::span<const T>>
      sums;  // kTree: of the covering nodes of `owned`, in shard order; else one or none
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_CONTRIBUTION_H_

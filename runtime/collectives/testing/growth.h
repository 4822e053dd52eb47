// How an allreduce and an ordered sum grow with the number of ranks, on a simulated network.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROWTH_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROWTH_H_

#include <cstddef>

#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives::testing {

NodeMap MapOf(Shape shape);

struct Growth {
  double predicted = 0;      // seconds, by the cost model
  double simulated = 0;      // seconds, by the simulated network
  size_t peers = 0;          // the most that a rank talks to: a connection each
  size_t scratch_bytes = 0;  // the most that a rank holds beside its input and its result
};

// Of one allreduce, or one ordered sum with a shard of each rank's own (`kind` is one of the two),
// of `bytes` of float32 by this algorithm, with the model's built-in numbers. Verifies the result.
// Counts memory by its own operator new, so the program must not have another.
Growth MeasureGrowth(OperationKind kind, Algorithm algorithm, Shape shape, size_t bytes);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROWTH_H_

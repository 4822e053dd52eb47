// The two-level allreduce: inside each node first, so that the network carries each byte once per
// node instead of once per rank. Called inside an operation of the transport; blocking and errors
// as Transport's.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TWO_LEVEL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TWO_LEVEL_H_

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/selector.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = every rank's `in` combined, the same bits on each. The array is cut into chunks
// (TwoLevelChunkBytes), and these into as many slices as the smallest node has ranks. In each node
// the i-th rank combines the node's i-th slice (direct_reduce.h); then the i-th ranks of all nodes
// combine theirs by `method.between`: doubling, halving-doubling or ring; then each spreads it in
// its node, and all of it for one chunk while the next one begins. With one rank in the smallest
// node that is the method of leaders. 2n(N-1)/N bytes out of each of N nodes. (As in Open MPI's
// coll/han and NCCL's intra- and inter-node phases.) Any shape; at least two ranks.
absl::Status TwoLevelAllreduce(Transport& transport, const Method& method, const Combiner& combine,
                               ConstElements in, Elements out);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TWO_LEVEL_H_

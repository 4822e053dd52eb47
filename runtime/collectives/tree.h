// Algorithms in log2(W) steps, for what is small or has one source. Called inside an operation of
// the transport; blocking and errors as Transport's. They do not call Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TREE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TREE_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Down a binomial tree from `root`; pieces of `segment_bytes` follow one another down the levels.
absl::Status TreeBroadcast(Transport& transport, int root, std::span<std::byte> data,
                           size_t segment_bytes);

// A dissemination barrier (Hensgen, Finkel and Manber, 1988): in step k each rank tells the one 2^k
// further, and waits for the one 2^k before.
absl::Status DisseminationBarrier(Transport& transport);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TREE_H_

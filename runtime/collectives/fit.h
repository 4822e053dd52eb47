// The cost model's numbers of one round, measured by its own ranks.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_FIT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_FIT_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// What tells this process's machine from others: the kernel's boot, the memory that its
// processes can share and their network; containers of one machine may have different ones, and
// then share no memory.
std::string MachineName();

// What one rank measures of its links and of its core; 0 where it has no such link. Every rank of
// the group calls it inside an operation: the ranks of a node shift small and large messages around
// a ring, all at once, as an algorithm's step does; then the first ranks of the nodes do. About a
// dozen messages and a megabyte each; calls Finish. The least of several tries, so that what else
// the machine does counts little.
absl::Status MeasureLinks(Transport& transport, const NodeMap& nodes, CostModel* model);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_FIT_H_

#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

const char* OperationKindName(OperationKind kind) {
  static constexpr const char* kNames[kOperationKinds] = {
      "allreduce", "ordered_sum", "reduce_scatter", "reduce",  "broadcast", "allgather",
      "gather",    "scatter",     "all_to_all",     "barrier", "send",      "send_receive",
  };
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace ringmaster::collectives

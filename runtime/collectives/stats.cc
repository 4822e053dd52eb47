#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

const char* OperationKindName(OperationKind kind) {
  static constexpr const char* kNames[kOperationKinds] = {
      "allreduce_sum", "ordered_sum", "allreduce_int64", "broadcast", "allgather", "barrier",
  };
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace ringmaster::collectives

// Whether workers that take from the same memory, as all of one laptop do, have room for their
// steps side by side. Each by itself had (Workload::CheckModel).
#ifndef RINGMASTER_RUNTIME_TRAIN_MEMORY_CHECK_H_
#define RINGMASTER_RUNTIME_TRAIN_MEMORY_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/device/available_memory.h"

namespace ringmaster::train {

// What a rank has yet to take, in bytes, and from where.
struct MemoryNeed {
  int64_t bytes = 0;
  std::vector<device::MemoryPool> pools;
};

// Every rank calls it, and it blocks as the communicator's operations do. From when the first rank
// finds out `mine` until its call is over no rank may take or give back much memory, so they meet
// in a Barrier before.
//
// What is wrong with the first pool that has less than its ranks need together, as in "workers 0, 1
// need 12.30 GB more of memory together, their machine has 9.10 GB left; ...", the same on every
// rank; nothing where all have room. Errors are the communicator's; kInternal: a rank said nothing
// that makes sense.
absl::StatusOr<std::optional<std::string>> FindLackOfMemory(collectives::Communicator& communicator,
                                                            const MemoryNeed& mine);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_MEMORY_CHECK_H_

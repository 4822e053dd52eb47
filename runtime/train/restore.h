// How the ranks of a round agree on what they train on from.
#ifndef RINGMASTER_RUNTIME_TRAIN_RESTORE_H_
#define RINGMASTER_RUNTIME_TRAIN_RESTORE_H_

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/shard_name.h"
#include "runtime/collectives/communicator.h"
#include "runtime/train/replica.h"

namespace ringmaster::train {

// Restores `replica` from the newest of rank 0's `candidates` (newest first) that loads on every
// rank, or resets it to step 0 when none does. Returns the candidates without those that did not
// load everywhere: the one that was restored comes first. `rejected` is called, on the ranks
// concerned, for each that does not load. Every rank calls it. Blocks on the disk and on peers;
// fails only as the communicator's operations do, and then leaves the replica in any state.
absl::StatusOr<std::vector<checkpoint::CheckpointRef>> RestoreNewest(
    collectives::Communicator& communicator, const std::filesystem::path& directory,
    std::span<const checkpoint::CheckpointRef> candidates, Replica& replica,
    const std::function<void(const checkpoint::CheckpointRef&, const absl::Status&)>& rejected);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_RESTORE_H_

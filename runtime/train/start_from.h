// How a job that has no checkpoint of its own yet gets what another job trained.
#ifndef RINGMASTER_RUNTIME_TRAIN_START_FROM_H_
#define RINGMASTER_RUNTIME_TRAIN_START_FROM_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/train/replica.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Puts what `trainer.startFrom` of the workload's manifest means, which must be set, into
// `replica`, which is at step 0 with the values that the seed gives. Rank 0 looks which checkpoint
// it is. A relative path begins in `workspace`; `own` is the directory of this job's checkpoints,
// which it may not be. Every rank calls it, and all get the same: nothing, or, where one of them
// could not, has other weights than rank 0, or would have no step left to train, what is wrong, by
// its path in the manifest; the replica is of no use then. Blocks on the disk and on peers; fails
// only as the communicator's operations do.
absl::StatusOr<std::optional<std::string>> StartFrom(collectives::Communicator& communicator,
                                                     const Workload& workload,
                                                     const std::filesystem::path& workspace,
                                                     const std::filesystem::path& own,
                                                     Replica& replica);

}  // namespace ringmaster::train

namespace ringmaster::train {

// Puts what `from` means into `replica`, which is at step 0 with the values that the seed gives,
// and which must not have taken all of `total_steps` by then. Rank 0 looks which checkpoint it is,
// in a directory relative to `workspace`. Every rank calls it, and all get the same: nothing, or,
// where one of them could not or has other weights than rank 0, what is wrong, by its path in the
// manifest; the replica is of no use then. Blocks on the disk and on peers; fails only as the
// communicator's operations do.
absl::StatusOr<std::optional<std::string>> StartFrom(collectives::Communicator& communicator,
                                                     const training::v1alpha1::StartFrom& from,
                                                     const std::string& workspace,
                                                     uint64_t total_steps, Replica& replica);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_START_FROM_H_

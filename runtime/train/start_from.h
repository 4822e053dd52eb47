// How a job that has no checkpoint of its own yet gets what another job trained.
#ifndef RINGMASTER_RUNTIME_TRAIN_START_FROM_H_
#define RINGMASTER_RUNTIME_TRAIN_START_FROM_H_

#include <filesystem>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/train/ending.h"
#include "runtime/train/replica.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Whether the job's own checkpoints, in `own`, stay apart from what `from` names; relative paths
// begin in `workspace`. To be asked before anything is written or cleared away there.
// kInvalidArgument if not.
absl::Status CheckStartFrom(const training::v1alpha1::StartFrom& from,
                            const std::filesystem::path& workspace,
                            const std::filesystem::path& own);

// Puts what `trainer.startFrom` of the workload's manifest means, which must be set, into
// `replica`, which is at step 0 with the values that the seed gives. How evaluations came along, by
// which training stops early and the best checkpoint is known, is this job's own from here on. Rank
// 0 looks which checkpoint it is; the newest may be deleted while it is read, and then the next
// newest is looked for. Every rank calls it, and all get the same: nothing, or, where one of them
// could not, has other files than rank 0, or would have no step left to train, how the worker ends;
// the replica is of no use then. Blocks on the disk and on peers; fails only as the communicator's
// operations do.
absl::StatusOr<std::optional<Ending>> StartFrom(collectives::Communicator& communicator,
                                                const Workload& workload,
                                                const std::filesystem::path& workspace,
                                                Replica& replica);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_START_FROM_H_

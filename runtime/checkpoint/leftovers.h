// Removes what nobody will load any more. A file that is gone already is no error: all workers
// share the directory. Blocks on the disk.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_LEFTOVERS_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_LEFTOVERS_H_

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/shard_name.h"

namespace ringmaster::checkpoint {

// The files of one checkpoint.
absl::Status RemoveCheckpoint(const std::filesystem::path& directory, const CheckpointId& id);

// Gives the files of checkpoints that do not load another name (RejectedName), under which nothing
// loads or removes them, so that a person can look at what went wrong. Only the latest are kept:
// those that were set aside before are removed, unless none of `rejected` has a file any more.
// Returns the new names.
absl::StatusOr<std::vector<std::string>> SetAside(const std::filesystem::path& directory,
                                                  const std::string& job,
                                                  std::span<const CheckpointRef> rejected);

// At the start of round `round`: what earlier rounds of `job` left behind, which is their temporary
// files, and files of checkpoints that are not in `existing` and so never will be. Whatever has
// another name, belongs to another job or cannot be read is left alone. Returns the names that were
// removed. kOk also when the directory is not there.
absl::StatusOr<std::vector<std::string>> RemoveLeftovers(const std::filesystem::path& directory,
                                                         const std::string& job, int64_t round,
                                                         std::span<const CheckpointRef> existing);

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_LEFTOVERS_H_

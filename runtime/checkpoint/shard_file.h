// One rank's file of a checkpoint: which tensors it holds, and how it is written so that a crash at
// any moment leaves no half of it under its own name.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_SHARD_FILE_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_SHARD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_name.h"

namespace ringmaster::checkpoint {

// Metadata that every shard file carries beside the caller's.
inline constexpr char kMetadataJob[] = "ringmaster.job";
inline constexpr char kMetadataContent[] = "ringmaster.content_sha256";  // of the arrays' bytes

// A half-open range of the list of tensors.
struct PartRange {
  size_t begin = 0;
  size_t end = 0;
};

// Which of the tensors, whose sizes are given, `rank` of `world` writes: contiguous, whole tensors,
// about equal bytes. A pure function, so the ranks need not talk about it. May be empty.
PartRange PartOf(std::span<const size_t> bytes, int world, int rank);

struct WrittenShard {
  std::string digest;  // sha256 of the whole file, in hexadecimal
  int64_t bytes = 0;
};

// Writes the file under its temporary name, syncs it, renames it, and syncs the directory, which is
// made when missing. Blocks on the disk. Thread-safe for different shards.
//   kResourceExhausted   disk full, quota or file size limit
// After an error the temporary file is gone and whatever was there before is as it was.
absl::StatusOr<WrittenShard> WriteShard(const std::filesystem::path& directory,
                                        const std::string& job, const CheckpointId& id, int rank,
                                        std::span<const TensorView> tensors, Metadata metadata);

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_SHARD_FILE_H_

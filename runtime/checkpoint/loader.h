// Loads a checkpoint, whatever world size wrote it, or says what is wrong with it.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_LOADER_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_LOADER_H_

#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_name.h"

namespace ringmaster::checkpoint {

// All of a checkpoint's tensors, or of a single file's. Owns the files' content; movable.
class Checkpoint {
 public:
  // `digest`: CombinedDigest of the files (shard_name.h).
  Checkpoint(std::vector<SafetensorsFile> files, std::string digest)
      : files_(std::move(files)), digest_(std::move(digest)) {}

  // The caller's metadata, the same in every file.
  const Metadata& metadata() const { return files_.front().metadata(); }
  // Null when no file has it. Valid while the checkpoint lives.
  const TensorView* Find(std::string_view name) const;
  const std::string& digest() const { return digest_; }

 private:
  std::vector<SafetensorsFile> files_;  // by rank
  std::string digest_;
};

// Reads and checks every file of `ref`. Blocks on the disk; needs memory for the whole checkpoint.
//   kNotFound   a file is missing: named, with a word on sharing when only other ranks' are
//   kDataLoss   a file is torn or corrupt (named), or together they are not what `ref` says
absl::StatusOr<Checkpoint> Load(const std::filesystem::path& directory, const CheckpointRef& ref);

// The same of one of which no digest is known: each file has its own, which is checked.
absl::StatusOr<Checkpoint> Load(const std::filesystem::path& directory, const CheckpointId& id);

// A file by itself, of any program that writes safetensors. What it has of a checksum is checked.
absl::StatusOr<Checkpoint> LoadFile(const std::filesystem::path& path);

// What `directory` has whole, all of its files by their names, whoever wrote it: newest step first,
// and of the same step the last round. Blocks on the disk. kNotFound, or as the system says, where
// it is none that can be read.
absl::StatusOr<std::vector<CheckpointId>> WholeCheckpoints(const std::filesystem::path& directory);

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_LOADER_H_

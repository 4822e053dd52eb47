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

// All of a checkpoint's tensors. Owns the files' content; movable.
class Checkpoint {
 public:
  explicit Checkpoint(std::vector<SafetensorsFile> files) : files_(std::move(files)) {}

  // The caller's metadata, the same in every file.
  const Metadata& metadata() const { return files_.front().metadata(); }
  // Null when no file has it. Valid while the checkpoint lives.
  const TensorView* Find(std::string_view name) const;

 private:
  std::vector<SafetensorsFile> files_;  // by rank
};

// Reads and checks every file of `ref`. Blocks on the disk; needs memory for the whole checkpoint.
//   kNotFound   a file is missing: named, with a word on sharing when only other ranks' are
//   kDataLoss   a file is torn or corrupt (named), or together they are not what `ref` says
absl::StatusOr<Checkpoint> Load(const std::filesystem::path& directory, const CheckpointRef& ref);

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_LOADER_H_

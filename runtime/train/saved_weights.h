// Weights that some job has left: a checkpoint among others in a directory, or a file.
#ifndef RINGMASTER_RUNTIME_TRAIN_SAVED_WEIGHTS_H_
#define RINGMASTER_RUNTIME_TRAIN_SAVED_WEIGHTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/loader.h"

namespace ringmaster::train {

// As a person names it.
struct SavedWeights {
  std::filesystem::path path;   // of a directory of checkpoints, or of a safetensors file
  std::optional<int64_t> step;  // of the directory's checkpoints; the newest where absent
};

// "runs/first@13", "runs/first" or "model.safetensors". An @ belongs to the path where all of the
// text is one that exists, and where no number follows. Looks at the disk.
SavedWeights ParseSavedWeights(const std::string& text);

// What it is: a whole checkpoint, or the file itself (nothing). Errors begin with the path.
//   kNotFound         there is nothing at the path, no whole checkpoint, or none of the step: it
//                     says which there are
//   kInvalidArgument  a step of a file
absl::StatusOr<std::optional<checkpoint::CheckpointId>> Find(const SavedWeights& saved);

// Reads what Find has found at `path`. Errors are checkpoint::Load's.
absl::StatusOr<checkpoint::Checkpoint> Load(const std::filesystem::path& path,
                                            const std::optional<checkpoint::CheckpointId>& found);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_SAVED_WEIGHTS_H_

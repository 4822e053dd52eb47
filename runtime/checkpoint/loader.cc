#include "runtime/checkpoint/loader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "runtime/checkpoint/shard_file.h"

namespace ringmaster::checkpoint {
namespace {

// Before anything is read: a missing file is the cheapest thing to see.
absl::Status CheckAllThere(const std::filesystem::path& directory, const CheckpointId& id) {
  std::vector<std::string> missing;
  for (int rank = 0; rank < id.world_size; ++rank) {
    std::error_code error;
    const std::string name = ShardFileName(id, rank);
    if (!std::filesystem::exists(directory / name, error)) missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  const bool some = std::cmp_less(missing.size(), id.world_size);
  return absl::NotFoundError(fmt::format(
      "{} of {} files are missing in {}, {} among them{}", missing.size(), id.world_size,
      directory.string(), missing.front(), some ? "; all workers must share this directory" : ""));
}

absl::Status CheckContent(const SafetensorsFile& file, const std::string& path) {
  const auto expected = file.metadata().find(kMetadataContent);
  if (expected == file.metadata().end())
    return absl::DataLossError(path + ": has no checksum of its content");
  Sha256 hash;
  hash.Update(file.data());
  if (Hex(hash.Finish()) == expected->second) return absl::OkStatus();
  return absl::DataLossError(path + ": corrupt: its content does not match its checksum");
}

// What the caller said about the whole checkpoint, without what belongs to the file.
Metadata Common(const SafetensorsFile& file) {
  Metadata metadata = file.metadata();
  metadata.erase(kMetadataContent);
  return metadata;
}

absl::Status CheckTogether(const std::filesystem::path& directory, const CheckpointId& id,
                           const std::string* digest, std::span<const SafetensorsFile> files,
                           std::span<const std::string> digests) {
  const std::string first = (directory / ShardFileName(id, 0)).string();
  if (digest != nullptr && CombinedDigest(digests) != *digest) {
    return absl::DataLossError(fmt::format(
        "{} and the {} files of its checkpoint do not have the digest that was recorded, {}", first,
        id.world_size, digest->substr(0, 12)));
  }
  for (const SafetensorsFile& file : files) {
    if (Common(file) == Common(files.front())) continue;
    return absl::DataLossError(first + ": the files of its checkpoint contradict one another");
  }
  return absl::OkStatus();
}

// `digest`: null where none was recorded.
absl::StatusOr<Checkpoint> LoadAll(const std::filesystem::path& directory, const CheckpointId& id,
                                   const std::string* digest) {
  if (id.world_size < 1) return absl::DataLossError("a checkpoint without files");
  RM_RETURN_IF_ERROR(CheckAllThere(directory, id));
  std::vector<SafetensorsFile> files;
  std::vector<std::string> digests;
  for (int rank = 0; rank < id.world_size; ++rank) {
    const std::string path = (directory / ShardFileName(id, rank)).string();
    RM_ASSIGN_OR_RETURN(std::string content, ReadFile(path, std::numeric_limits<size_t>::max()));
    digests.push_back(Hex(Sha256Of(content)));
    RM_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Parse(std::move(content), path));
    RM_RETURN_IF_ERROR(CheckContent(file, path));
    files.push_back(std::move(file));
  }
  RM_RETURN_IF_ERROR(CheckTogether(directory, id, digest, files, digests));
  return Checkpoint(std::move(files), CombinedDigest(digests));
}

}  // namespace

const TensorView* Checkpoint::Find(std::string_view name) const {
  for (const SafetensorsFile& file : files_) {
    for (const TensorView& tensor : file.tensors()) {
      if (tensor.name == name) return &tensor;
    }
  }
  return nullptr;
}

absl::StatusOr<Checkpoint> Load(const std::filesystem::path& directory, const CheckpointRef& ref) {
  return LoadAll(directory, ref.id, &ref.digest);
}

absl::StatusOr<Checkpoint> Load(const std::filesystem::path& directory, const CheckpointId& id) {
  return LoadAll(directory, id, nullptr);
}

absl::StatusOr<Checkpoint> LoadFile(const std::filesystem::path& path) {
  RM_ASSIGN_OR_RETURN(std::string content,
                      ReadFile(path.string(), std::numeric_limits<size_t>::max()));
  const std::string digest = Hex(Sha256Of(content));
  RM_ASSIGN_OR_RETURN(SafetensorsFile file,
                      SafetensorsFile::Parse(std::move(content), path.string()));
  if (file.metadata().contains(kMetadataContent))
    RM_RETURN_IF_ERROR(CheckContent(file, path.string()));
  std::vector<SafetensorsFile> files;
  files.push_back(std::move(file));
  return Checkpoint(std::move(files), CombinedDigest({&digest, 1}));
}

absl::StatusOr<std::vector<CheckpointId>> WholeCheckpoints(const std::filesystem::path& directory) {
  std::map<CheckpointId, int> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::optional<ShardName> name = ParseShardName(entry->path().filename().string());
    if (name && !name->temporary) ++files[name->id];
  }
  if (error) return ErrnoStatus(error.value(), directory.string());
  std::vector<CheckpointId> whole;
  for (const auto& [id, count] : files) {
    if (count == id.world_size) whole.push_back(id);
  }
  std::reverse(whole.begin(), whole.end());  // by step, then by round
  return whole;
}

}  // namespace ringmaster::checkpoint

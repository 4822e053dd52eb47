#include "runtime/checkpoint/leftovers.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <unistd.h>

#include "common/file.h"
#include "common/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_file.h"

namespace ringmaster::checkpoint {
namespace {

absl::Status Remove(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, path.string());
}

bool Exists(const CheckpointId& id, std::span<const CheckpointRef> existing) {
  return std::any_of(existing.begin(), existing.end(),
                     [&](const CheckpointRef& ref) { return ref.id == id; });
}

// Whether a finished file says that `job` wrote it.
bool WrittenBy(const std::string& job, const std::filesystem::path& path) {
  absl::StatusOr<std::string> content = ReadFile(path, std::numeric_limits<size_t>::max());
  if (!content.ok()) return false;
  const auto file = SafetensorsFile::Parse(*std::move(content), path.string());
  if (!file.ok()) return false;
  const auto writer = file->metadata().find(kMetadataJob);
  return writer != file->metadata().end() && writer->second == job;
}

bool IsLeftover(const std::filesystem::path& path, const std::string& job, int64_t round,
                std::span<const CheckpointRef> existing) {
  const std::optional<ShardName> name = ParseShardName(path.filename().string());
  if (!name || name->id.round >= round) return false;
  if (name->temporary) return name->tag == JobTag(job);
  return !Exists(name->id, existing) && WrittenBy(job, path);
}

}  // namespace

absl::Status RemoveCheckpoint(const std::filesystem::path& directory, const CheckpointId& id) {
  for (int rank = 0; rank < id.world_size; ++rank) {
    RM_RETURN_IF_ERROR(Remove(directory / ShardFileName(id, rank)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RemoveLeftovers(const std::filesystem::path& directory,
                                                         const std::string& job, int64_t round,
                                                         std::span<const CheckpointRef> existing) {
  std::vector<std::string> removed;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  if (error.value() == ENOENT) return removed;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!IsLeftover(entry->path(), job, round, existing)) continue;
    RM_RETURN_IF_ERROR(Remove(entry->path()));
    removed.push_back(entry->path().filename().string());
  }
  if (error) return ErrnoStatus(error.value(), directory.string());
  std::sort(removed.begin(), removed.end());
  return removed;
}

}  // namespace ringmaster::checkpoint

#include "runtime/checkpoint/leftovers.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <unistd.h>

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

// At most `bytes` from the beginning of a file; fewer when it is shorter or cannot be read.
std::string Beginning(const std::filesystem::path& path, size_t bytes) {
  std::string content(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(content.data(), static_cast<std::streamsize>(bytes));
  content.resize(static_cast<size_t>(in.gcount()));
  return content;
}

// Whether a finished file says that `job` wrote it. Only the header is read: the arrays may have
// gigabytes, and the job's other workers wait.
bool WrittenBy(const std::string& job, const std::filesystem::path& path) {
  constexpr size_t kFirst = size_t{1} << 16;
  constexpr size_t kLast = kFirst << 12;  // more than a header may have
  for (size_t bytes = kFirst; bytes <= kLast; bytes <<= 4) {
    const std::string beginning = Beginning(path, bytes);
    if (const auto metadata = ParseMetadata(beginning); metadata.ok()) {
      const auto writer = metadata->find(kMetadataJob);
      return writer != metadata->end() && writer->second == job;
    }
    if (beginning.size() < bytes) return false;
  }
  return false;
}

// Removes the files whose names begin like that, but for those named.
absl::Status RemoveBut(const std::filesystem::path& directory, const std::string& prefix,
                       const std::vector<std::string>& kept) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || std::find(kept.begin(), kept.end(), name) != kept.end())
      continue;
    RM_RETURN_IF_ERROR(Remove(entry->path()));
  }
  return error ? ErrnoStatus(error.value(), directory.string()) : absl::OkStatus();
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

absl::StatusOr<std::vector<std::string>> SetAside(const std::filesystem::path& directory,
                                                  const std::string& job,
                                                  std::span<const CheckpointRef> rejected) {
  std::vector<std::string> names;
  for (const CheckpointRef& ref : rejected) {
    for (int rank = 0; rank < ref.id.world_size; ++rank) {
      const std::filesystem::path path = directory / ShardFileName(ref.id, rank);
      const std::string name = RejectedName(ref.id, rank, job);
      if (::rename(path.c_str(), (directory / name).c_str()) == 0) {
        names.push_back(name);
      } else if (errno != ENOENT) {
        return ErrnoStatus(errno, path.string());
      }
    }
  }
  if (!names.empty()) RM_RETURN_IF_ERROR(RemoveBut(directory, RejectedPrefix(job), names));
  return names;
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

#include "runtime/checkpoint/shard_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace ringmaster::checkpoint {
namespace {

absl::Status DiskError(int error_number, const std::string& what) {
  if (error_number == EFBIG) {
    return absl::ResourceExhaustedError(what + ": over the limit on a file's size");
  }
  return ErrnoStatus(error_number, what);
}

// Writes what it is given and hashes it on the way.
class HashingFile {
 public:
  HashingFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::Status Append(std::span<const std::byte> bytes) {
    hash_.Update(bytes);
    written_ += static_cast<int64_t>(bytes.size());
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return DiskError(errno, path_);
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }

  WrittenShard Finish() { return {.digest = Hex(hash_.Finish()), .bytes = written_}; }

 private:
  int fd_;
  std::string path_;
  Sha256 hash_;
  int64_t written_ = 0;
};

absl::StatusOr<WrittenShard> WriteTemporary(const std::filesystem::path& path,
                                            const std::string& header,
                                            std::span<const TensorView> tensors) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return DiskError(errno, path.string());
  HashingFile file(fd.get(), path.string());
  RM_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
  for (const TensorView& tensor : tensors) RM_RETURN_IF_ERROR(file.Append(tensor.data));
  if (::fsync(fd.get()) != 0) return DiskError(errno, path.string());
  if (::close(fd.Release()) != 0) return DiskError(errno, path.string());
  return file.Finish();
}

std::string ContentDigest(std::span<const TensorView> tensors) {
  Sha256 hash;
  for (const TensorView& tensor : tensors) hash.Update(tensor.data);
  return Hex(hash.Finish());
}

}  // namespace

PartRange PartOf(std::span<const size_t> bytes, int world, int rank) {
  size_t total = 0;
  for (const size_t size : bytes) total += size;
  // A tensor belongs to the rank in whose share of the bytes its middle lies.
  const auto owner = [&](size_t before, size_t size) {
    if (total == 0) return 0;
    const double middle = static_cast<double>(before) + static_cast<double>(size) / 2;
    return std::min(world - 1, static_cast<int>(middle * world / static_cast<double>(total)));
  };
  PartRange part{bytes.size(), bytes.size()};
  size_t before = 0;
  for (size_t i = 0; i < bytes.size(); before += bytes[i], ++i) {
    const int its = owner(before, bytes[i]);
    if (its >= rank && part.begin == bytes.size()) part.begin = i;
    if (its > rank) {
      part.end = i;
      break;
    }
  }
  return part;
}

absl::StatusOr<WrittenShard> WriteShard(const std::filesystem::path& directory,
                                        const std::string& job, const CheckpointId& id, int rank,
                                        std::span<const TensorView> tensors, Metadata metadata) {
  RM_RETURN_IF_ERROR(MakeDirectories(directory));
  metadata[kMetadataJob] = job;
  metadata[kMetadataContent] = ContentDigest(tensors);
  const std::filesystem::path temporary = directory / TemporaryName(id, rank, job);
  const std::filesystem::path path = directory / ShardFileName(id, rank);
  absl::StatusOr<WrittenShard> written =
      WriteTemporary(temporary, EncodeHeader(tensors, metadata), tensors);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = DiskError(errno, path.string());
  }
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return written.status();
  }
  RM_RETURN_IF_ERROR(SyncDirectory(directory));
  return written;
}

}  // namespace ringmaster::checkpoint

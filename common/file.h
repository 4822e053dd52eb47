// Files, written so that a crash leaves the old content or the new, never a mixture.
// All functions block on the disk and are thread-safe as long as callers do not write the same path
// at once. Errors carry the path and the system's words; a full disk is kResourceExhausted, a
// missing file kNotFound.
#ifndef RINGMASTER_COMMON_FILE_H_
#define RINGMASTER_COMMON_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ringmaster {

// A file descriptor with one owner; closed when the owner goes.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The whole file. Refuses more than `max_bytes` with kResourceExhausted.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     size_t max_bytes = size_t{1} << 30);

// Writes beside the target, syncs, renames over it and syncs the directory. On failure the
// temporary file is removed and the target is as it was.
absl::Status WriteFileAtomically(const std::filesystem::path& path,
                                 std::span<const std::byte> content);
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// Writes all bytes to `fd`, also where the kernel takes them piecemeal.
absl::Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& what);

// Makes the names in a directory durable.
absl::Status SyncDirectory(const std::filesystem::path& directory);

// As `mkdir -p`.
absl::Status MakeDirectories(const std::filesystem::path& directory);

// An advisory lock on a file, held until the object goes.
class FileLock {
 public:
  // Makes the file where there is none; it then holds `content` (a process id, say).
  // kAlreadyExists, with the holder's content of the file, if another has the lock.
  static absl::StatusOr<FileLock> Acquire(const std::filesystem::path& path,
                                          const std::string& content);

  // Whether somebody holds it now. Takes nothing, so that nobody who wants it meanwhile is refused.
  // False where there is no such file.
  static absl::StatusOr<bool> IsHeld(const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_FILE_H_

#include "common/file.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster {
namespace {

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// An exclusive lock of the open file, not of the process: closing another descriptor of the same
// file does not let go of it, and it can be looked for without being taken.
struct flock WholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

absl::Status WriteAndSync(const std::filesystem::path& path, std::span<const std::byte> content) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, path.string());
  RM_RETURN_IF_ERROR(WriteAll(fd.get(), content, path.string()));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, path.string());
  if (::close(fd.Release()) != 0) return ErrnoStatus(errno, path.string());
  return absl::OkStatus();
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) Reset(other.Release());
  return *this;
}

int UniqueFd::Release() {
  return std::exchange(fd_, -1);
}

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, path.string());
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, path.string());
    if (got == 0) return content;
    if (content.size() + got > max_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: larger than the {} bytes that are read", path.string(), max_bytes));
    }
    content.append(buffer, got);
  }
}

absl::Status WriteFileAtomically(const std::filesystem::path& path,
                                 std::span<const std::byte> content) {
  const std::filesystem::path temporary = fmt::format("{}.tmp-{}", path.string(), ::getpid());
  absl::Status status = WriteAndSync(temporary, content);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, path.string());
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
}

absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  return WriteFileAtomically(path, AsBytes(content));
}

absl::Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, what);
    bytes = bytes.subspan(written);
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::filesystem::path& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, directory.string());
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, directory.string());
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return error ? ErrnoStatus(error.value(), directory.string()) : absl::OkStatus();
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::filesystem::path& path,
                                           const std::string& content) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, path.string());
  struct flock lock = WholeFile();
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EWOULDBLOCK && errno != EACCES) return ErrnoStatus(errno, path.string());
    const auto holder = ReadFile(path, 4096);
    return absl::AlreadyExistsError(fmt::format("{} is locked by {}", path.string(),
                                                holder.ok() ? *holder : "another process"));
  }
  if (::ftruncate(fd.get(), 0) != 0) return ErrnoStatus(errno, path.string());
  RM_RETURN_IF_ERROR(WriteAll(fd.get(), AsBytes(content), path.string()));
  return FileLock(std::move(fd));
}

absl::StatusOr<bool> FileLock::IsHeld(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return false;
  if (!fd.valid()) return ErrnoStatus(errno, path.string());
  struct flock lock = WholeFile();
  if (::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) return ErrnoStatus(errno, path.string());
  return lock.l_type != F_UNLCK;
}

}  // namespace ringmaster

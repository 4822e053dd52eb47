#include "runtime/collectives/transport/shm/segment.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/boot_id.h"
#include "common/sha256.h"
#include "common/status.h"

namespace ringmaster::collectives::shm {
namespace {

constexpr char kDirectory[] = "/dev/shm/";
constexpr size_t kRandomBytes = 16;
constexpr size_t kNameBytes = sizeof(kNamePrefix) - 1 + 2 * kRandomBytes;

std::string RandomName() {
  const std::string random = RandomBytes(kRandomBytes);
  return kNamePrefix + Hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()});
}

bool IsName(const std::string& name) {
  return name.size() == kNameBytes && name.compare(0, sizeof(kNamePrefix) - 1, kNamePrefix) == 0 &&
         name.find_first_not_of("0123456789abcdef", sizeof(kNamePrefix) - 1) == std::string::npos;
}

// The lock, unless a sweeper was faster and has taken the file away.
bool LockNamed(int fd) {
  struct stat found {};
  return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &found) == 0 && found.st_nlink > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Segment>> Segment::Make(size_t bytes) {
  constexpr int kAttempts = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::unique_ptr<Segment> segment(new Segment(RandomName()));
    const std::string path = kDirectory + segment->name_;
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, "shared memory " + path);
    if (!LockNamed(fd.get())) continue;
    segment->locked_ = std::move(fd);
    int error;
    do {
      error = posix_fallocate(segment->locked_.get(), 0, static_cast<off_t>(bytes));
    } while (error == EINTR);
    if (error == ENOSPC || error == EFBIG) {
      return absl::ResourceExhaustedError(fmt::format("/dev/shm has no room for {} bytes", bytes));
    }
    if (error != 0) return ErrnoStatus(error, fmt::format("{} bytes of {}", bytes, path));
    RM_RETURN_IF_ERROR(segment->Map(segment->locked_.get(), bytes, Access::kWrite));
    return segment;
  }
  return absl::UnavailableError("files of /dev/shm vanish as they are made");
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::Open(const std::string& name, size_t bytes,
                                                       Access access) {
  if (!IsName(name)) return absl::InvalidArgumentError("not the name of a segment");
  std::unique_ptr<Segment> segment(new Segment(name));
  const std::string path = kDirectory + name;
  const int flags = access == Access::kRead ? O_RDONLY : O_RDWR;
  const UniqueFd fd(open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "shared memory " + path);
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) return ErrnoStatus(errno, path);
  if (static_cast<size_t>(found.st_size) != bytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} bytes instead of {}", path, found.st_size, bytes));
  }
  RM_RETURN_IF_ERROR(segment->Map(fd.get(), bytes, access));
  return segment;
}

absl::Status Segment::Map(int fd, size_t bytes, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, fmt::format("mapping {} bytes", bytes));
  memory_ = {static_cast<std::byte*>(at), bytes};
  return absl::OkStatus();
}

Segment::~Segment() {
  Unlink();
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

void Segment::Unlink() {
  if (!locked_.valid()) return;
  unlink((kDirectory + name_).c_str());
  locked_.Reset();
}

void SweepAbandoned() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory, error)) {
    if (!IsName(entry.path().filename().string())) continue;
    const UniqueFd fd(open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (fd.valid() && LockNamed(fd.get())) unlink(entry.path().c_str());
  }
}

std::string MachineId() {
  const auto id = BootId();
  struct stat network {};
  if (!id.ok() || stat("/proc/thread-self/ns/net", &network) != 0) return "";
  return fmt::format("{}/{}", *id, network.st_ino);
}

}  // namespace ringmaster::collectives::shm

#include "operator/kube/memory/journal.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::kube::memory {
namespace {

constexpr std::string_view kBeforeChecksum = "{\"crc32\":\"";
constexpr std::string_view kAfterChecksum = "\",\"write\":";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::size_t kChecksumEnd = kBeforeChecksum.size() + kChecksumDigits;
constexpr std::size_t kHeader = kChecksumEnd + kAfterChecksum.size();

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}

std::string Checksum(std::string_view bytes) {
  static constexpr auto kTable = MakeCrcTable();
  std::uint32_t crc = 0xFFFFFFFFu;
  for (unsigned char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ byte) & 0xFF];
  return fmt::format("{:08x}", crc ^ 0xFFFFFFFFu);
}

std::string EncodeLine(const Json& write) {
  // Bytes that are no UTF-8 would make dump throw; in an API object they are somebody's mistake,
  // not ours to die of.
  const std::string body = write.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{}{}{}{}}}\n", kBeforeChecksum, Checksum(body), kAfterChecksum, body);
}

// Takes the newline off already. Sets `why` when the line is not whole.
std::optional<Json> DecodeLine(std::string_view line, std::string& why) {
  // Also what the checksum does not cover is compared byte by byte: any changed bit is damage.
  if (line.size() < kHeader + 1 || !line.starts_with(kBeforeChecksum) ||
      !line.substr(kChecksumEnd).starts_with(kAfterChecksum) || line.back() != '}') {
    why = "it is not a whole record";
    return std::nullopt;
  }
  const std::string_view body = line.substr(kHeader, line.size() - kHeader - 1);
  if (line.substr(kBeforeChecksum.size(), kChecksumDigits) != Checksum(body)) {
    why = "its checksum does not match";
    return std::nullopt;
  }
  Json write = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (write.is_discarded()) {
    why = "it is not JSON";
    return std::nullopt;
  }
  return write;
}

// Whether a line that is not whole ends in a record that is: then it is two, and the newline
// between them is what was damaged.
bool EndsInRecord(std::string_view line) {
  std::string why;
  for (std::size_t at = line.find(kBeforeChecksum, 1); at != std::string_view::npos;
       at = line.find(kBeforeChecksum, at + 1)) {
    if (DecodeLine(line.substr(at), why)) return true;
  }
  return false;
}

absl::StatusOr<std::string> ReadAll(int file, const std::string& path) {
  std::string content;
  std::array<char, 1 << 16> block;
  off_t at = 0;
  while (true) {
    const ssize_t got = ::pread(file, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("read {}", path));
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

absl::StatusOr<FileLock> TakeLock(const std::string& path) {
  auto lock = FileLock::Acquire(path, std::to_string(::getpid()));
  if (lock.status().code() != absl::StatusCode::kAlreadyExists) return lock;
  return absl::FailedPreconditionError(
      fmt::format("another process uses this store: {}", Message(lock.status())));
}

absl::Status Write(const UniqueFd& file, std::string_view text, const std::string& path) {
  return WriteAll(file.get(), std::as_bytes(std::span(text)), fmt::format("write {}", path));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(
    const std::string& path, Durability durability,
    const std::function<absl::Status(const Json&)>& replay, std::string* torn) {
  RM_ASSIGN_OR_RETURN(FileLock lock, TakeLock(path + ".lock"));
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, fmt::format("open {}", path));
  std::unique_ptr<Journal> journal(new Journal(path, durability, std::move(lock), std::move(file)));
  RM_RETURN_IF_ERROR(journal->Replay(replay, torn));
  return journal;
}

Journal::Journal(std::string path, Durability durability, FileLock lock, UniqueFd file)
    : path_(std::move(path)),
      durability_(durability),
      lock_(std::move(lock)),
      file_(std::move(file)) {}

absl::Status Journal::Replay(const std::function<absl::Status(const Json&)>& replay,
                             std::string* torn) {
  if (torn != nullptr) torn->clear();
  RM_ASSIGN_OR_RETURN(const std::string content, ReadAll(file_.get(), path_));
  std::size_t start = 0;
  while (start < content.size()) {
    const std::size_t newline = content.find('\n', start);
    const bool last = newline == std::string::npos || newline + 1 == content.size();
    std::string why = "it has no end";
    std::optional<Json> write;
    const std::string_view line = std::string_view(content).substr(start, newline - start);
    if (newline != std::string::npos) write = DecodeLine(line, why);
    if (!write && (!last || EndsInRecord(line))) {
      return absl::DataLossError(
          fmt::format("{}:{}: the journal is damaged: {}", path_, lines_ + 1, why));
    }
    if (!write) {
      if (torn != nullptr) {
        *torn = fmt::format("{}:{}: dropped the last line, {} bytes: {}", path_, lines_ + 1,
                            content.size() - start, why);
      }
      break;
    }
    RM_RETURN_IF_ERROR(Annotate(replay(*write), fmt::format("{}:{}", path_, lines_ + 1)));
    ++lines_;
    start = newline + 1;
  }
  size_ = static_cast<std::int64_t>(start);
  if (start < content.size() && ::ftruncate(file_.get(), size_) != 0) {
    return ErrnoStatus(errno, fmt::format("truncate {}", path_));
  }
  return absl::OkStatus();
}

absl::Status Journal::Append(const Json& write) {
  RM_RETURN_IF_ERROR(broken_);
  const std::string line = EncodeLine(write);
  if (absl::Status status = Write(file_, line, path_); !status.ok()) return Undo(status);
  if (durability_ == Durability::kMachine && ::fdatasync(file_.get()) != 0) {
    // After a failed fsync the kernel may have dropped the pages: trying again would lie.
    broken_ = ErrnoStatus(errno, fmt::format("fsync {}", path_));
    return broken_;
  }
  size_ += static_cast<std::int64_t>(line.size());
  ++lines_;
  return absl::OkStatus();
}

absl::Status Journal::Undo(const absl::Status& cause) {
  if (::ftruncate(file_.get(), size_) != 0)
    broken_ = Annotate(cause, "the journal cannot be mended");
  return cause;
}

absl::Status Journal::Rewrite(const std::vector<Json>& writes) {
  RM_RETURN_IF_ERROR(broken_);
  const std::string temporary = path_ + ".tmp";
  UniqueFd file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, fmt::format("open {}", temporary));
  std::string content;
  for (const Json& write : writes) content += EncodeLine(write);
  absl::Status status = Write(file, content, temporary);
  if (status.ok() && ::fsync(file.get()) != 0)
    status = ErrnoStatus(errno, fmt::format("fsync {}", temporary));
  if (status.ok() && ::rename(temporary.c_str(), path_.c_str()) != 0) {
    status = ErrnoStatus(errno, fmt::format("rename {}", temporary));
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  file_ = std::move(file);
  size_ = static_cast<std::int64_t>(content.size());
  lines_ = static_cast<std::int64_t>(writes.size());
  broken_ = SyncDirectory(std::filesystem::absolute(path_).parent_path());
  return broken_;
}

}  // namespace ringmaster::kube::memory

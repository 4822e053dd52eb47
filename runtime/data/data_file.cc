#include "runtime/data/data_file.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace ringmaster::data {

absl::Status DataFile::Error(std::string_view message) const {
  return absl::InvalidArgumentError(fmt::format("{}: {}", path, message));
}

absl::Status DataFile::ErrorAt(size_t line, std::string_view message) const {
  return absl::InvalidArgumentError(fmt::format("{}:{}: {}", path, line, message));
}

absl::StatusOr<DataFile> ReadDataFile(const std::string& path, const std::string& workspace) {
  const std::filesystem::path full = std::filesystem::path(workspace) / path;
  DataFile file{.path = full.lexically_normal().string()};
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(full, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(fmt::format("{}: no such data file", file.path));
  }
  // A pipe or a device would block or never end.
  if (!std::filesystem::is_regular_file(status)) return file.Error("not a regular file");
  const uintmax_t bytes = std::filesystem::file_size(full, error);
  if (error) return absl::InternalError(fmt::format("{}: {}", file.path, error.message()));
  if (bytes > kMaxFileBytes) {
    return file.Error(fmt::format("{} bytes; a data file has at most {}", bytes, kMaxFileBytes));
  }
  RM_ASSIGN_OR_RETURN(file.content, ReadFile(full, kMaxFileBytes));
  if (file.content.empty()) return file.ErrorAt(1, "the file is empty");
  return file;
}

std::string Fingerprint(std::string_view content, std::string_view settings) {
  Sha256 hash;
  hash.Update(settings);
  hash.Update(std::string_view("\n"));
  hash.Update(content);
  return Hex(hash.Finish());
}

std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxQuoted)) quoted += c >= 0x20 && c < 0x7f ? c : '?';
  quoted += text.size() > kMaxQuoted ? "...'" : "'";
  return quoted;
}

}  // namespace ringmaster::data

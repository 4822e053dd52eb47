// A fresh temporary folder that only this user may enter; removed with all in it when its owner
// goes. Its path is short enough for a Unix socket of a short name in it.
#ifndef RINGMASTER_COMMON_TEMPORARY_FOLDER_H_
#define RINGMASTER_COMMON_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"

namespace ringmaster {

class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp where that makes too long a path. Errors as errno's.
  static absl::StatusOr<TemporaryFolder> Make();
  ~TemporaryFolder() { Remove(); }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }  // empty once removed
  void Remove();

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_TEMPORARY_FOLDER_H_

// A fresh temporary folder that only this user may enter; removed with all in it when its owner
// goes. Its path is short enough for a Unix socket of a short name in it.
#ifndef RINGMASTER_LAUNCHER_PRIVATE_FOLDER_H_
#define RINGMASTER_LAUNCHER_PRIVATE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace ringmaster::launcher {

class PrivateFolder {
 public:
  // Below TMPDIR, or /tmp where that makes too long a path. Errors as errno's.
  static absl::StatusOr<PrivateFolder> Make();
  ~PrivateFolder() { Remove(); }
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  const std::string& path() const { return path_; }  // empty once removed
  void Remove();

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_PRIVATE_FOLDER_H_

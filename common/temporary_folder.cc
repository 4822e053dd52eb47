#include "common/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include <sys/un.h>

#include "common/status.h"

namespace ringmaster {
namespace {

constexpr size_t kLongestName = 16;  // of a socket in the folder, with its slash

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "rm-XXXXXX").string();
  if (error || name.size() + kLongestName >= sizeof(sockaddr_un::sun_path)) name = "/tmp/rm-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return ErrnoStatus(errno, name);
  return TemporaryFolder(std::move(name));
}

void TemporaryFolder::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;  // what is left in a temporary folder harms nobody
  std::filesystem::remove_all(path_, ignored);
  path_.clear();
}

}  // namespace ringmaster

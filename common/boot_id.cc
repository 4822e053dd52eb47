#include "common/boot_id.h"

#include "common/file.h"
#include "common/status.h"

namespace ringmaster {

absl::StatusOr<std::string> BootId(const std::string& root) {
  RM_ASSIGN_OR_RETURN(const std::string line, ReadFile(root + "/proc/sys/kernel/random/boot_id"));
  return line.substr(0, line.find('\n'));
}

}  // namespace ringmaster

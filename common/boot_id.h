// The kernel's name for its boot: all containers of one machine read the same, no two machines do.
#ifndef RINGMASTER_COMMON_BOOT_ID_H_
#define RINGMASTER_COMMON_BOOT_ID_H_

#include <string>

#include "absl/status/statusor.h"

namespace ringmaster {

// Reads a file of /proc. kNotFound where that has none. `root` is where the file system begins, for
// tests.
absl::StatusOr<std::string> BootId(const std::string& root = "");

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_BOOT_ID_H_

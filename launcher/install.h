// Takes the launcher into a folder that another image's container shares: the program, the shared
// libraries that it was built with and their loader, so that it runs whatever that image has, or
// lacks:
//
//   FOLDER/ld.so --library-path FOLDER FOLDER/ringmaster-launcher -- python train.py
//
// The loader's option, unlike an environment variable, is not passed on to the program.
#ifndef RINGMASTER_LAUNCHER_INSTALL_H_
#define RINGMASTER_LAUNCHER_INSTALL_H_

#include <filesystem>

#include "absl/status/status.h"

namespace ringmaster::launcher {

// Copies what this process runs from. What is in the folder under the same names is replaced. The
// error names the file. Blocks on the disk.
absl::Status InstallLauncher(const std::filesystem::path& folder);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_INSTALL_H_

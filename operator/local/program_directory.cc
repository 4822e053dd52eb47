#include "operator/local/program_directory.h"

#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

#include "common/env.h"

namespace ringmaster::local {

absl::StatusOr<std::string> ProgramDirectory(std::initializer_list<std::string> programs) {
  std::filesystem::path directory = env::GetString("RINGMASTER_BIN_DIR");
  std::error_code error;
  if (directory.empty())
    directory = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::string& program : programs) {
    if (::access((directory / program).c_str(), X_OK) != 0) {
      return absl::NotFoundError(
          fmt::format("{} is not in {}; set RINGMASTER_BIN_DIR to the folder that holds it",
                      program, directory.string()));
    }
  }
  return std::filesystem::absolute(directory).string();
}

}  // namespace ringmaster::local

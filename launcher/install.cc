#include "launcher/install.h"

#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kProgramName[] = "ringmaster-launcher";
constexpr char kLoaderName[] = "ld.so";

// The files that this process has mapped: the program, its libraries, the loader.
std::set<fs::path> MappedFiles() {
  std::set<fs::path> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos) files.insert(line.substr(path));
  }
  return files;
}

std::string NameFor(const fs::path& file, const fs::path& program) {
  if (file == program) return kProgramName;
  const std::string name = file.filename().string();
  return name.starts_with("ld-linux") || name.starts_with("ld-musl") ? kLoaderName : name;
}

// By a name of its own first, so that a container that starts meanwhile never finds half a file.
absl::Status Copy(const fs::path& from, const fs::path& to) {
  const fs::path temporary = to.string() + ".new";
  std::error_code error;
  fs::copy_file(from, temporary, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(temporary, fs::perms(0755), error);
  if (!error) fs::rename(temporary, to, error);
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(), fmt::format("{} to {}", from.string(), to.string()));
}

}  // namespace

absl::Status InstallLauncher(const fs::path& folder) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "/proc/self/exe");
  RM_RETURN_IF_ERROR(MakeDirectories(folder));
  for (const fs::path& file : MappedFiles()) {
    const std::string name = NameFor(file, program);
    if (name != kProgramName && name.find(".so") == std::string::npos) continue;  // locales, say
    RM_RETURN_IF_ERROR(Copy(file, folder / name));
  }
  return SyncDirectory(folder);
}

}  // namespace ringmaster::launcher

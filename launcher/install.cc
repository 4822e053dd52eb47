#include "launcher/install.h"

#include <link.h>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kProgramName[] = "ringmaster-launcher";
constexpr char kLoaderName[] = "ld.so";

// Where the libraries of this process and their loader were found, under the names by which they
// are asked for: links, mostly.
std::vector<fs::path> LoadedLibraries() {
  std::vector<fs::path> files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* files) {
        // The program itself has no name, and what the kernel adds no path.
        const fs::path path = info->dlpi_name;
        if (path.is_absolute()) static_cast<std::vector<fs::path>*>(files)->push_back(path);
        return 0;
      },
      &files);
  return files;
}

std::string NameFor(const fs::path& library) {
  const std::string name = library.filename().string();
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
  RM_RETURN_IF_ERROR(Copy(program, folder / kProgramName));
  for (const fs::path& library : LoadedLibraries())
    RM_RETURN_IF_ERROR(Copy(library, folder / NameFor(library)));
  return SyncDirectory(folder);
}

}  // namespace ringmaster::launcher

#include "cli/run_directory.h"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::cli {
namespace {

constexpr char kFolder[] = ".ringmaster";
constexpr char kLockName[] = "lock";

}  // namespace

RunDirectory::RunDirectory(const std::string& job, const std::filesystem::path& root)
    : job_(job), path_(root / kFolder / job) {}

absl::Status RunDirectory::Lock() {
  if (const absl::Status made = MakeDirectories(path_); !made.ok()) {
    return Annotate(made,
                    "a job's state is kept under the current directory; run this where you "
                    "may write");
  }
  auto lock = FileLock::Acquire(path_ / kLockName, fmt::format("process {}", ::getpid()));
  if (absl::IsAlreadyExists(lock.status())) {
    return absl::UnavailableError(
        fmt::format("job {} runs already: {}; stop that one, or give this one another name", job_,
                    Message(lock.status())));
  }
  RM_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  return absl::OkStatus();
}

absl::Status RunDirectory::SetAside() {
  const std::filesystem::path aside = path_.string() + ".previous";
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) std::filesystem::create_directories(aside, error);
  if (error) return ErrnoStatus(error.value(), aside.string());
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.path().filename() == kLockName) continue;
    std::filesystem::rename(entry.path(), aside / entry.path().filename(), error);
    if (error) return ErrnoStatus(error.value(), entry.path().string());
  }
  return error ? ErrnoStatus(error.value(), path_.string()) : absl::OkStatus();
}

absl::StatusOr<bool> RunDirectory::IsLocked() const {
  return FileLock::IsHeld(path_ / kLockName);
}

bool RunDirectory::HasJournal() const {
  std::error_code ignored;
  return std::filesystem::exists(journal(), ignored);
}

std::vector<std::string> JobsUnder(const std::filesystem::path& root) {
  std::vector<std::string> jobs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / kFolder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find('.') == std::string::npos && RunDirectory(name, root).HasJournal())
      jobs.push_back(name);
  }
  std::ranges::sort(jobs);
  return jobs;
}

}  // namespace ringmaster::cli

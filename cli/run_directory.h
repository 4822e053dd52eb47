// The folder of one job on this machine, `.ringmaster/<job>/` under the current directory: the
// store's journal, logs, checkpoints.
//
//   store.journal    the objects: what `run` resumes from and `get` reads
//   operator.log     what the operator says
//   logs/            one file per worker pod
//   checkpoints/     where the manifest names no place of its own
//   lock             held by the process that runs the job
#ifndef RINGMASTER_CLI_RUN_DIRECTORY_H_
#define RINGMASTER_CLI_RUN_DIRECTORY_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::cli {

class RunDirectory {
 public:
  // Names the folder; nothing is made. `root` is the current directory.
  explicit RunDirectory(const std::string& job,
                        const std::filesystem::path& root = std::filesystem::current_path());

  // Makes the folder and takes its lock, until this object goes. kUnavailable names the process
  // that has it.
  absl::Status Lock();

  // Whether a process runs the job now. Takes nothing, so that a run which starts meanwhile is not
  // refused.
  absl::StatusOr<bool> IsLocked() const;

  // Moves what an earlier run left aside, to `.ringmaster/<job>.previous`, in place of what was
  // there. The lock stays.
  absl::Status SetAside();

  bool HasJournal() const;

  const std::string& job() const { return job_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal() const { return path_ / "store.journal"; }
  std::filesystem::path logs() const { return path_ / "logs"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path operator_log() const { return path_ / "operator.log"; }

 private:
  std::string job_;
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

// The jobs that have a folder under `root`, by name.
std::vector<std::string> JobsUnder(
    const std::filesystem::path& root = std::filesystem::current_path());

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_RUN_DIRECTORY_H_

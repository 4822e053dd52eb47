#include "cli/logs_command.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/pod_name.h"
#include "cli/run_directory.h"
#include "cli/signals.h"
#include "cli/snapshot.h"
#include "common/contract.h"
#include "common/file.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);

void PrintLines(std::string_view text, const std::string& prefix) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    fmt::print("{}{}\n", prefix, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fflush(stdout);
}

// What a file holds from `offset` on.
absl::StatusOr<std::string> ReadFrom(const std::filesystem::path& path, size_t offset) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, path.string());
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::pread(fd.get(), buffer, sizeof buffer, offset + text.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, path.string());
    if (got == 0) return text;
    text.append(buffer, got);
  }
}

// Prints what each file has got beyond what was shown of it.
class Follower {
 public:
  Follower(const LogsOptions& options, const RunDirectory& directory)
      : options_(options), directory_(directory) {}

  // A line without its end is printed only when it is `final`: nobody writes any more.
  absl::Status PrintNew(bool final) {
    const auto files = LogFiles(directory_.logs(), options_.job, options_.index);
    for (const auto& file : files) {
      const bool first = !shown_.contains(file.string());
      size_t& shown = shown_[file.string()];
      std::error_code ignored;
      if (std::filesystem::file_size(file, ignored) < shown) shown = 0;  // a new run's
      RM_ASSIGN_OR_RETURN(std::string news, ReadFrom(file, shown));
      if (!final) news.resize(news.find_last_of('\n') + 1);
      shown += news.size();
      PrintLines(first ? LastLines(news, options_.tail) : news,
                 files.size() > 1 ? file.stem().string() + "  " : "");
    }
    return absl::OkStatus();
  }

  bool found() const { return !shown_.empty(); }

 private:
  const LogsOptions& options_;
  const RunDirectory& directory_;
  std::map<std::string, size_t> shown_;  // file to the bytes of it that were printed
};

// kNotFound: no such job, or it has no such worker and never had.
absl::Status CheckNames(const LogsOptions& options, const RunDirectory& directory) {
  RM_ASSIGN_OR_RETURN(const Snapshot snapshot, Snapshot::Of(directory));
  if (!options.index) return absl::OkStatus();
  const auto Workers = [&](const char* field) {
    return kube::FindInt(snapshot.job(), {"spec", "workers", field}).value_or(1);
  };
  const int64_t workers = std::max(Workers("replicas"), Workers("maxReplicas"));
  if (*options.index < workers || !LogFiles(directory.logs(), options.job, options.index).empty()) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(fmt::format(
      "{}: no worker {}; there {}", options.job, *options.index,
      workers == 1 ? "is worker 0 alone" : fmt::format("are workers 0 to {}", workers - 1)));
}

// Prints until the job's run has ended, or Ctrl-C.
absl::Status Follow(Follower& follower, const RunDirectory& directory) {
  CatchStopSignals();
  for (bool runs = true; runs && StopSignals() == 0;) {
    // Asked before reading: what is written until the run's end is then read too.
    RM_ASSIGN_OR_RETURN(runs, directory.IsLocked());
    RM_RETURN_IF_ERROR(follower.PrintNew(!runs));
    if (runs) std::this_thread::sleep_for(kLookEvery);
  }
  return absl::OkStatus();
}

}  // namespace

std::string LastLines(const std::string& text, int lines) {
  if (lines < 0) return text;
  if (lines == 0) return "";
  size_t start = text.size();
  while (start > 0) {
    const bool ends_line = text[start - 1] == '\n' && start != text.size();
    if (ends_line && --lines == 0) break;
    --start;
  }
  return text.substr(start);
}

std::vector<std::filesystem::path> LogFiles(const std::filesystem::path& directory,
                                            const std::string& job, std::optional<int> index) {
  std::map<std::pair<int, int>, std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".log") continue;
    const auto numbers = ParsePodName(entry.path().stem().string(), job);
    if (numbers && (!index || *index == numbers->first)) files[*numbers] = entry.path();
  }
  std::vector<std::filesystem::path> ordered;
  for (const auto& [numbers, path] : files) ordered.push_back(path);
  return ordered;
}

int Logs(const LogsOptions& options) {
  const RunDirectory directory(options.job);
  if (const absl::Status status = CheckNames(options, directory); !status.ok())
    return FailWith(status);
  Follower follower(options, directory);
  const absl::Status status =
      options.follow ? Follow(follower, directory) : follower.PrintNew(true);
  if (!status.ok()) return FailWith(status);
  if (follower.found()) return contract::kExitOk;
  return FailWith(absl::NotFoundError(
      fmt::format("{}: no logs{} yet", options.job,
                  options.index ? fmt::format(" of worker {}", *options.index) : "")));
}

}  // namespace ringmaster::cli

#include "cli/logs_command.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <string_view>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "cli/run_directory.h"
#include "cli/signals.h"
#include "common/contract.h"
#include "common/file.h"
#include "common/status.h"

namespace ringmaster::cli {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);

// "<job>-<index>-<incarnation>" to its two numbers; nothing for another name.
std::optional<std::pair<int, int>> ParsePodName(std::string_view name, const std::string& job) {
  if (!name.starts_with(job + "-")) return std::nullopt;
  name.remove_prefix(job.size() + 1);
  int index = 0;
  int incarnation = 0;
  const char* end = name.data() + name.size();
  auto parsed = std::from_chars(name.data(), end, index);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
  parsed = std::from_chars(parsed.ptr + 1, end, incarnation);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return std::pair(index, incarnation);
}

void PrintLines(std::string_view text, const std::string& prefix) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    fmt::print("{}{}\n", prefix, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fflush(stdout);
}

// Prints what each file has got beyond what was shown of it.
class Follower {
 public:
  Follower(const LogsOptions& options, const RunDirectory& directory)
      : options_(options), directory_(directory) {}

  bool PrintNew() {
    const auto files = LogFiles(directory_.logs(), options_.job, options_.index);
    for (const auto& file : files) {
      const auto content = ReadFile(file);
      if (!content.ok()) continue;
      const auto [shown, first] = shown_.try_emplace(file.string(), 0);
      std::string news = content->substr(std::min(shown->second, content->size()));
      // A line that is still being written waits for its end.
      if (options_.follow) news.resize(news.find_last_of('\n') + 1);
      shown->second += news.size();
      PrintLines(first ? LastLines(news, options_.tail) : news,
                 files.size() > 1 ? file.stem().string() + "  " : "");
    }
    return !files.empty();
  }

 private:
  const LogsOptions& options_;
  const RunDirectory& directory_;
  std::map<std::string, size_t> shown_;
};

// Whether a process runs the job now.
bool Runs(const std::string& job) {
  RunDirectory directory(job);
  return !directory.Lock().ok();
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
  if (!directory.HasJournal()) {
    fmt::print(stderr, "{}: no such job under {}\n", options.job,
               std::filesystem::current_path().string());
    return contract::kExitBadData;
  }
  if (options.follow) CatchStopSignals();
  Follower follower(options, directory);
  bool found = follower.PrintNew();
  while (options.follow && StopSignals() == 0 && Runs(options.job)) {
    std::this_thread::sleep_for(kLookEvery);
    found = follower.PrintNew() || found;
  }
  if (found) return contract::kExitOk;
  fmt::print(stderr, "{}: no logs{}\n", options.job,
             options.index ? fmt::format(" of worker {}", *options.index) : "");
  return contract::kExitBadData;
}

}  // namespace ringmaster::cli

#include "common/children.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/file.h"

namespace ringmaster {
namespace {

std::optional<pid_t> ParseNumber(std::string_view text) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The parent's pid out of /proc/<pid>/stat, whose second field may hold spaces and parentheses.
std::optional<pid_t> ParentOf(const std::filesystem::path& directory) {
  const auto stat = ReadFile(directory / "stat", 4096);
  if (!stat.ok()) return std::nullopt;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) return std::nullopt;
  const size_t begin = name_end + 4;  // behind ") S "
  return ParseNumber(std::string_view(*stat).substr(begin, stat->find(' ', begin) - begin));
}

std::vector<pid_t> Children(const std::function<bool(pid_t child)>& choose) {
  std::vector<pid_t> children;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::optional<pid_t> pid = ParseNumber(entry->path().filename().string());
    if (pid && ParentOf(entry->path()) == ::getpid() && choose(*pid)) children.push_back(*pid);
  }
  return children;
}

// Waits for the child's end and reaps it; false when it has not come by `until`.
bool ReapBy(SteadyTime until, pid_t child) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SystemClock().SteadyNow());
  pollfd entry{pidfd.get(), POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <= 0)
    return false;
  return ::waitpid(child, nullptr, WNOHANG) == child;
}

}  // namespace

void KillChildren(Duration patience, const std::function<bool(pid_t child)>& choose) {
  const SteadyTime until = SystemClock().SteadyNow() + patience;
  while (SystemClock().SteadyNow() < until) {
    const std::vector<pid_t> children = Children(choose);
    if (children.empty()) return;
    for (const pid_t child : children) ::kill(child, SIGKILL);
    // Their own children become ours as they die; the next turn finds those.
    for (const pid_t child : children) {
      if (!ReapBy(until, child)) return;
    }
  }
}

}  // namespace ringmaster

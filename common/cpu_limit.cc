#include "common/cpu_limit.h"

#include <optional>
#include <sstream>
#include <string>

#include <sys/stat.h>

#include "common/file.h"

namespace ringmaster {
namespace {

// What `cpu.max` says, "200000 100000" or "max 100000", in whole processors.
std::optional<uint64_t> LimitOf(const std::filesystem::path& group) {
  const auto text = ReadFile(group / "cpu.max", 256);
  if (!text.ok()) return std::nullopt;
  std::istringstream words(*text);
  uint64_t quota = 0;
  uint64_t period = 0;
  if (!(words >> quota >> period) || period == 0) return std::nullopt;
  return quota / period;
}

// The line of version 2 is "0::" and the path below the mount.
std::optional<std::string> PathOf(const std::filesystem::path& membership) {
  const auto text = ReadFile(membership, 64 * 1024);
  if (!text.ok()) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return std::nullopt;
}

}  // namespace

CpuLimit TightestCpuLimit(const std::filesystem::path& membership,
                          const std::filesystem::path& groups) {
  CpuLimit tightest;
  std::optional<std::string> path = PathOf(membership);
  while (path) {
    const std::filesystem::path group = groups / *path;
    struct stat found {};
    if (const auto limit = LimitOf(group);
        limit && *limit < tightest.processors && stat(group.c_str(), &found) == 0) {
      tightest = {.processors = *limit, .group = found.st_ino};
    }
    if (path->empty()) break;
    const size_t slash = path->rfind('/');
    path->resize(slash == std::string::npos ? 0 : slash);
  }
  return tightest;
}

}  // namespace ringmaster

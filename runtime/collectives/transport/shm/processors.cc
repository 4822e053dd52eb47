#include "runtime/collectives/transport/shm/processors.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <sched.h>
#include <sstream>
#include <string>

#include <sys/stat.h>

#include "common/file.h"

namespace ringmaster::collectives::shm {
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

Processors OwnProcessors(const std::filesystem::path& membership,
                         const std::filesystem::path& groups) {
  Processors own;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (size_t i = 0; i < Processors::kMost; ++i) {
      if (CPU_ISSET(i, &set)) own.allowed[i / 64] |= uint64_t{1} << i % 64;
    }
  }
  std::optional<std::string> path = PathOf(membership);
  while (path) {
    const std::filesystem::path group = groups / *path;
    struct stat found {};
    if (const auto limit = LimitOf(group);
        limit && *limit < own.limit && stat(group.c_str(), &found) == 0) {
      own.limit = *limit;
      own.group = found.st_ino;
    }
    if (path->empty()) break;
    const size_t slash = path->rfind('/');
    path->resize(slash == std::string::npos ? 0 : slash);
  }
  return own;
}

bool MayKeepOne(const Processors& own, std::span<const Processors> known, size_t unknown) {
  const auto rivals = [&](const auto& is_rival) {
    const size_t found = static_cast<size_t>(std::count_if(known.begin(), known.end(), is_rival));
    return 1 + found + (found > 0 || known.empty() ? unknown : 0);
  };
  size_t processors = 0;
  for (const uint64_t word : own.allowed) processors += static_cast<size_t>(std::popcount(word));
  const size_t on_them = rivals([&](const Processors& other) {
    for (size_t i = 0; i < own.allowed.size(); ++i) {
      if ((own.allowed[i] & other.allowed[i]) != 0) return true;
    }
    return false;
  });
  const size_t in_group = rivals([&](const Processors& other) { return other.group == own.group; });
  return on_them <= processors && in_group <= own.limit;
}

}  // namespace ringmaster::collectives::shm

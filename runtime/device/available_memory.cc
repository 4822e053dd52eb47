#include "runtime/device/available_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace ringmaster::device {
namespace {

// The number in a file that holds one; nothing for "max" or no such file.
std::optional<int64_t> Number(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (!(in >> value) || value < 0) return std::nullopt;
  return value;
}

// The number behind a word at the beginning of a line.
std::optional<int64_t> NumberBehind(const std::string& word, const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word + " ")) continue;
    return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return std::nullopt;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* statistics;
  const char* inactive;  // pages of files, which are given back when memory is short,
  const char* active;    // those that were read more than once as well
};

std::optional<int64_t> LeftInGroup(const std::string& root, const GroupFiles& files) {
  const std::optional<int64_t> limit = Number(root + files.limit);
  const std::optional<int64_t> usage = Number(root + files.usage);
  if (!limit || !usage) return std::nullopt;
  int64_t of_files = 0;
  for (const char* word : {files.inactive, files.active})
    of_files += NumberBehind(word, root + files.statistics).value_or(0);
  // A kernel that counts in batches may say that more of them are there than all that is used.
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - of_files));
}

}  // namespace

std::optional<int64_t> AvailableMemory(const std::string& root) {
  constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                    "/sys/fs/cgroup/memory.stat", "inactive_file", "active_file"};
  constexpr GroupFiles kVersion1 = {
      "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
      "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file", "total_active_file"};
  std::optional<int64_t> available = NumberBehind("MemAvailable:", root + "/proc/meminfo");
  if (available) *available *= 1024;
  for (const GroupFiles& files : {kVersion2, kVersion1}) {
    const std::optional<int64_t> left = LeftInGroup(root, files);
    if (left) available = std::min(*left, available.value_or(*left));
  }
  return available;
}

}  // namespace ringmaster::device

#include "runtime/device/available_memory.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/boot_id.h"

namespace ringmaster::device {
namespace {

constexpr int64_t kKib = 1024;

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
    if (!line.starts_with(word + " ") && !line.starts_with(word + "\t")) continue;
    return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return std::nullopt;
}

// Of a control group.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* statistics;
  const char* inactive;  // pages of files, which are given back when memory is short,
  const char* active;    // those that were read more than once as well
};

// The kernel's boot, and the mount namespace for what is of a container: processes of one see one
// control group's files. Empty where either cannot be read.
std::string BootName(const std::string& root) {
  return BootId(root).value_or("");
}
std::string ContainerName(const std::string& root) {
  std::error_code error;
  const auto mounts = std::filesystem::read_symlink(root + "/proc/self/ns/mnt", error);
  const std::string boot = BootName(root);
  return error || boot.empty() ? "" : boot + "/" + mounts.string();
}

// Of both versions, of which a machine may have one, or both.
constexpr std::array kGroups = {
    GroupFiles{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
               "/sys/fs/cgroup/memory.stat", "inactive_file", "active_file"},
    GroupFiles{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
               "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
               "total_inactive_file", "total_active_file"}};

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

std::vector<MemoryPool> MemoryPools(const std::string& root) {
  std::vector<MemoryPool> pools;
  if (const auto machine = NumberBehind("MemAvailable:", root + "/proc/meminfo"))
    pools.push_back({BootName(root), "machine", *machine * kKib});
  std::optional<int64_t> least;
  for (const GroupFiles& files : kGroups) {
    if (const auto left = LeftInGroup(root, files)) least = std::min(*left, least.value_or(*left));
  }
  if (least) pools.push_back({ContainerName(root), "container", *least});
  return pools;
}

std::optional<int64_t> AvailableMemory(const std::string& root) {
  const std::vector<MemoryPool> pools = MemoryPools(root);
  const auto least = std::ranges::min_element(pools, {}, &MemoryPool::available);
  return least == pools.end() ? std::nullopt : std::optional(least->available);
}

std::optional<MemoryRoom> FindMemoryRoom(const std::string& root) {
  const std::optional<int64_t> available = AvailableMemory(root);
  if (!available) return std::nullopt;
  MemoryRoom room{.available = *available};
  for (const GroupFiles& files : kGroups)
    room.most = std::min(room.most, Number(root + files.limit).value_or(room.most));
  return room;
}

std::optional<int64_t> OwnMemory(const std::string& root) {
  const std::string status = root + "/proc/self/status";
  const std::optional<int64_t> resident = NumberBehind("RssAnon:", status);
  if (!resident) return std::nullopt;
  return (*resident + NumberBehind("VmSwap:", status).value_or(0)) * kKib;
}

}  // namespace ringmaster::device

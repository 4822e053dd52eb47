// Whether the kernel killed a process of this container for want of memory: an exit by SIGKILL does
// not say so, and what the kubelet says comes after the worker's report.
#ifndef RINGMASTER_LAUNCHER_OOM_KILLS_H_
#define RINGMASTER_LAUNCHER_OOM_KILLS_H_

#include <cstdint>
#include <filesystem>

namespace ringmaster::launcher {

// How many processes of this container the kernel has killed so far because a memory limit was
// reached; 0 where the control groups, of either version, do not say. Blocks for a read of a file
// of the kernel.
std::int64_t OomKills(const std::filesystem::path& control_groups = "/sys/fs/cgroup");

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_OOM_KILLS_H_

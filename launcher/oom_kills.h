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

// The same of a container that is this process's own, as a pod's is: it is the first process there.
// 0 where it is not: then others live there too, and it may have been one of theirs.
std::int64_t OwnOomKills();

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_OOM_KILLS_H_

// The processor time that a control group (version 2) has, whichever processors it runs on.
#ifndef RINGMASTER_COMMON_CPU_LIMIT_H_
#define RINGMASTER_COMMON_CPU_LIMIT_H_

#include <cstdint>
#include <filesystem>
#include <limits>

namespace ringmaster {

struct CpuLimit {
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  uint64_t processors = kNone;  // how many whole processors' worth
  uint64_t group = 0;           // which group has it; the same number in every container
};

// The tightest `cpu.max` of this process's control group and those above, as far as it sees them.
// What cannot be read limits nothing. The arguments are for tests.
CpuLimit TightestCpuLimit(const std::filesystem::path& membership = "/proc/self/cgroup",
                          const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CPU_LIMIT_H_

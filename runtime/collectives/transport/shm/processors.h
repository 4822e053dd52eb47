// Which processors the ranks of a machine may run on: whether one that waits can keep its own,
// looking at shared memory, without taking it from a rank that works.
//
// Each rank writes its own into the memory that it shares with another; they are a hint, nothing
// else depends on them.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_PROCESSORS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_PROCESSORS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "common/cpu_limit.h"

namespace ringmaster::collectives::shm {

struct Processors {
  static constexpr size_t kMost = 1024;  // as cpu_set_t
  static constexpr uint64_t kNoLimit = CpuLimit::kNone;

  std::array<uint64_t, kMost / 64> allowed{};  // a bit for each
  // Processor time that the ranks of one control group share: how many whole processors' worth.
  uint64_t limit = kNoLimit;
  uint64_t group = 0;  // which control group has that limit; the same number in every container

  bool operator==(const Processors&) const = default;
};

// Those of this process: its affinity, and the tightest `cpu.max` of its control group (version 2)
// and those above as far as it sees them. What cannot be read limits nothing. The arguments are
// for tests.
Processors OwnProcessors(const std::filesystem::path& membership = "/proc/self/cgroup",
                         const std::filesystem::path& groups = "/sys/fs/cgroup");

// Whether a rank that waits leaves a processor to each of the others: it may run on as many as
// there are ranks that may run on one of them, itself included, and its control group's limit is
// not lower than the number of ranks in it. `known` are the others that this rank shares memory
// with; `unknown` is how many more there are on the machine, which count as the known ones do.
bool MayKeepOne(const Processors& own, std::span<const Processors> known, size_t unknown);

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_PROCESSORS_H_

#include "runtime/collectives/transport/shm/processors.h"

#include <algorithm>
#include <bit>
#include <sched.h>

#include "common/cpu_limit.h"

namespace ringmaster::collectives::shm {
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
  const CpuLimit limit = TightestCpuLimit(membership, groups);
  own.limit = limit.processors;
  own.group = limit.group;
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

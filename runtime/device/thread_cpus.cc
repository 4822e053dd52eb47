#include "runtime/device/thread_cpus.h"

#include <algorithm>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <string>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/cpu_list.h"
#include "common/env.h"
#include "common/status.h"
#include "runtime/device/threads.h"

namespace ringmaster::device {

absl::Status PlaceOtherThreads(std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  pthread_attr_t attributes;
  int error = ::pthread_getattr_default_np(&attributes);
  if (error != 0) return ErrnoStatus(error, "read how threads are made");
  error = ::pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  if (error == 0) error = ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "set where new threads run");
}

absl::Status PlaceOtherThreadsAsTold() {
  const std::string text = env::GetString(contract::kEnvOtherCpus);
  if (text.empty()) return absl::OkStatus();
  const auto cpus = ParseCpuList(text);
  if (cpus) return PlaceOtherThreads(*cpus);
  return absl::InvalidArgumentError(fmt::format(
      "environment variable {}: '{}' is no list of processors", contract::kEnvOtherCpus, text));
}

std::vector<int> TeamCpus() {
  std::vector<int> cpus(static_cast<size_t>(ThreadCount()), -1);
#pragma omp parallel num_threads(ThreadCount())
  {
    const std::vector<int> allowed = AllowedCpus();
    if (allowed.size() == 1) cpus[static_cast<size_t>(omp_get_thread_num())] = allowed.front();
  }
  if (std::ranges::find(cpus, -1) != cpus.end()) cpus.clear();
  return cpus;
}

}  // namespace ringmaster::device

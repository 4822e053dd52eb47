#include "common/thread_binding.h"

#include <cerrno>
#include <sched.h>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/cpu_list.h"
#include "common/status.h"

namespace ringmaster {
namespace {

absl::Status BindThisThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("bind a thread to processor {}", cpu));
}

}  // namespace

absl::StatusOr<ThreadBinding> PlanBinding(const BindRequest& request, const BindingPlace& place) {
  if (place.limit.processors < place.allowed.size()) {
    return absl::FailedPreconditionError(fmt::format(
        "the control group has the time of {} of these {} processors, so that others run on them "
        "too; give the container processors of its own",
        place.limit.processors, place.allowed.size()));
  }
  auto placed = PlaceThreads(place.cores, static_cast<size_t>(request.threads),
                             static_cast<size_t>(request.communication));
  if (!placed) {
    size_t processors = 0;
    for (const Core& core : place.cores) processors += core.cpus.size();
    return absl::FailedPreconditionError(fmt::format(
        "{} threads that compute and {} cores for communication need as many processors, and {} "
        "are there",
        request.threads, request.communication, processors));
  }
  return ThreadBinding{
      .compute = std::move(placed->compute),
      .others = placed->communication.empty() ? place.allowed : std::move(placed->communication)};
}

absl::Status CheckMayBind(const ThreadBinding& binding) {
  absl::Status status;
  std::thread([&] {
    for (const int cpu : binding.compute) status.Update(BindThisThread(cpu));
  }).join();
  return status;
}

std::map<std::string, std::string> BindingEnvironment(const ThreadBinding& binding) {
  std::string places;
  for (const int cpu : binding.compute)
    places += fmt::format("{}{{{}}}", places.empty() ? "" : ",", cpu);
  return {{"OMP_PLACES", places},
          {"OMP_PROC_BIND", "close"},
          {contract::kEnvOtherCpus, FormatCpuList(binding.others)}};
}

}  // namespace ringmaster

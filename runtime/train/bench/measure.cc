#include "runtime/train/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <sys/resource.h>

#include "common/count_allocations.h"
#include "common/status.h"
#include "runtime/device/thread_cpus.h"
#include "runtime/train/bench/trial.h"
#include "runtime/train/graph_dump.h"
#include "runtime/train/step_trace.h"

namespace ringmaster::train::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWarmUp = 2;
// So many samples that a new order of them is drawn in few of the steps only.
constexpr uint32_t kSamples = 1 << 16;

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

struct Steps {
  std::vector<double> seconds;   // that each took
  int64_t most_allocations = 0;  // of any of them
};

// One look at the clock ends a step and begins the next.
absl::StatusOr<Steps> TakeSteps(LoneWorker& worker, double seconds) {
  Steps steps;
  const auto begin = SteadyClock::now();
  double taken = 0;
  while (WantsAnotherStep(std::ssize(steps.seconds), taken, seconds)) {
    const int64_t before = CountAllocations();
    RM_RETURN_IF_ERROR(worker.Step());
    steps.most_allocations = std::max(steps.most_allocations, CountAllocations() - before);
    const double now = SecondsSince(begin);
    steps.seconds.push_back(now - taken);
    taken = now;
  }
  return steps;
}

std::vector<Share> SharesOf(const StepProfile& profile) {
  std::map<std::string, double> seconds{{kSumOverWorkers, profile.times.reduce_seconds},
                                        {kOptimizer, profile.times.commit_seconds},
                                        {kBesideOps, profile.SecondsBesideOps()}};
  for (const graph::OpProfile& op : profile.ops) seconds[ClassOf(op.op)] += profile.SecondsOf(op);
  std::vector<Share> shares;
  for (const auto& [what, value] : seconds) shares.push_back({what, value});
  std::ranges::stable_sort(shares, std::ranges::greater(), &Share::seconds);
  return shares;
}

}  // namespace

double Median(std::vector<double> values) {
  const size_t half = values.size() / 2;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string ClassOf(const std::string& op) {
  return op.substr(0, std::min(op.find("_grad"), op.find("_again")));
}

absl::StatusOr<Result> Measure(const Options& options) {
  const auto begin = SteadyClock::now();
  RM_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(options));
  const auto batch = static_cast<uint32_t>(options.batch);
  RM_ASSIGN_OR_RETURN(const auto trial,
                      Trial::Make(subject, batch, std::max(kSamples, batch), options.kernels));
  LoneWorker& worker = trial->worker();
  const double before_steps = SecondsSince(begin);
  RM_RETURN_IF_ERROR(worker.Step());
  const double first_step = SecondsSince(begin);
  for (int i = 0; i < kWarmUp; ++i) RM_RETURN_IF_ERROR(worker.Step());
  RM_ASSIGN_OR_RETURN(Steps timed, TakeSteps(worker, options.seconds));
  Result result{.parameters = trial->workload().layout().ParameterCount(),
                .steps = std::ssize(timed.seconds),
                .peak_bytes = PeakBytes(),
                .most_allocations = timed.most_allocations};
  if (options.bind) result.cores = device::TeamCpus();
  result.step_seconds = Median(std::move(timed.seconds));
  result.samples_per_second = static_cast<double>(options.batch) / result.step_seconds;
  result.compile_seconds = std::max(0.0, first_step - result.step_seconds);
  result.first_step_extra_seconds = std::max(0.0, result.compile_seconds - before_steps);
  RM_ASSIGN_OR_RETURN(result.profile, TakeProfile(worker, options.seconds / 3));
  result.shares = SharesOf(result.profile);
  if (!options.trace.empty()) {
    RM_RETURN_IF_ERROR(
        WriteTrace(worker, {.file = options.trace,
                            .title = fmt::format("{}, batch {}", options.model, options.batch)}));
  }
  if (!options.dump_graph.empty())
    RM_RETURN_IF_ERROR(DumpGraphs(trial->workload(), options.kernels, options.dump_graph));
  return result;
}

}  // namespace ringmaster::train::bench

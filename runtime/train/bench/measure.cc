#include "runtime/train/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <sys/resource.h>

#include "common/status.h"
#include "runtime/device/thread_cpus.h"
#include "runtime/train/bench/trace.h"
#include "runtime/train/bench/trial.h"

namespace ringmaster::train::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWarmUp = 2;
constexpr int kLeastSteps = 5;
// Of a network whose steps take so long that five would be tedious.
constexpr int kFewestSteps = 2;
constexpr double kTedious = 20;  // seconds
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

// Steps for so long, but no fewer than a few.
absl::StatusOr<std::vector<StepTimes>> Steps(Trial& trial, double seconds) {
  std::vector<StepTimes> times;
  const auto begin = SteadyClock::now();
  while (times.size() < kFewestSteps || SecondsSince(begin) < seconds ||
         (times.size() < kLeastSteps && SecondsSince(begin) < kTedious)) {
    RM_ASSIGN_OR_RETURN(times.emplace_back(), trial.Step());
  }
  return times;
}

std::vector<Share> SharesOf(const graph::Profile& profile, const std::vector<StepTimes>& times) {
  const auto count = static_cast<double>(times.size());
  std::map<std::string, double> seconds;
  double compute = 0, ops = 0;
  for (const StepTimes& step : times) {
    compute += step.compute_seconds / count;
    seconds["(sum over workers)"] += step.reduce_seconds / count;
    seconds["(optimizer)"] += step.commit_seconds / count;
  }
  for (const graph::OpProfile& op : profile.ops) {
    const double own =
        std::chrono::duration<double>(op.time).count() / static_cast<double>(profile.runs);
    seconds[ClassOf(op.op)] += own;
    ops += own;
  }
  seconds["(samples, executor)"] = std::max(0.0, compute - ops);
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
  RM_ASSIGN_OR_RETURN(
      const auto trial,
      Trial::Make(MakeSubject(options), static_cast<uint32_t>(options.batch),
                  std::max(kSamples, static_cast<uint32_t>(options.batch)), options.kernels));
  RM_RETURN_IF_ERROR(trial->Step().status());
  const double first_step = SecondsSince(begin);
  for (int i = 0; i < kWarmUp; ++i) RM_RETURN_IF_ERROR(trial->Step().status());
  RM_ASSIGN_OR_RETURN(const std::vector<StepTimes> timed, Steps(*trial, options.seconds));
  Result result{.parameters = trial->workload().layout().ParameterCount(),
                .steps = static_cast<int64_t>(timed.size()),
                .peak_bytes = PeakBytes()};
  if (options.bind) result.cores = device::TeamCpus();
  std::vector<double> totals;
  for (const StepTimes& step : timed) totals.push_back(step.total());
  result.step_seconds = Median(std::move(totals));
  result.samples_per_second = static_cast<double>(options.batch) / result.step_seconds;
  result.compile_seconds = std::max(0.0, first_step - result.step_seconds);
  trial->SetProfile(&result.profile);
  const auto profiled = Steps(*trial, options.seconds / 3);
  trial->SetProfile(nullptr);
  RM_RETURN_IF_ERROR(profiled.status());
  result.profile.runs = static_cast<int64_t>(profiled->size());  // of all shards of a step
  result.shares = SharesOf(result.profile, *profiled);
  if (!options.trace.empty()) RM_RETURN_IF_ERROR(WriteTrace(*trial, options));
  return result;
}

}  // namespace ringmaster::train::bench

#include "runtime/train/plot/csv_table.h"

#include <iterator>

#include <fmt/format.h>

#include "absl/status/status.h"
#include "runtime/train/plot/curve.h"

namespace ringmaster::train::plot {
namespace {

constexpr uint64_t kMostSteps = 1'000'000;

}  // namespace

absl::StatusOr<std::string> Csv(const training::v1alpha1::TrainerConfig& config,
                                const optim::RunLength& run) {
  if (run.total_steps > kMostSteps) {
    return absl::InvalidArgumentError(
        fmt::format("a table has at most {} steps, the run has {}", kMostSteps, run.total_steps));
  }
  const StepRates rates(config, run);
  std::string table = "step,learning_rate,weight_decay\n";
  for (uint64_t step = 0; step < run.total_steps; ++step)
    fmt::format_to(std::back_inserter(table), "{},{},{}\n", step, rates.RateAt(step),
                   rates.DecayAt(step));
  return table;
}

}  // namespace ringmaster::train::plot

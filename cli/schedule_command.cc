#include "cli/schedule_command.h"

#include <utility>

#include <fmt/format.h>

#include "cli/companion.h"
#include "cli/failure.h"
#include "cli/worker_environment.h"

namespace ringmaster::cli {

int SchedulePlot(const SchedulePlotOptions& options) {
  const auto trainer = TakeWorkersEnvironment(options.manifest, options.set, "the schedule");
  if (!trainer.ok()) return FailWith(trainer.status());
  std::vector<std::string> arguments;
  if (!options.svg.empty()) arguments.insert(arguments.end(), {"--svg", options.svg});
  if (!options.csv.empty()) arguments.insert(arguments.end(), {"--csv", options.csv});
  if (options.samples > 0)
    arguments.insert(arguments.end(), {"--samples", fmt::format("{}", options.samples)});
  return BecomeCompanion("ringmaster-schedule-plot", std::move(arguments));
}

}  // namespace ringmaster::cli

#include "cli/schedule_command.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/companion.h"
#include "cli/failure.h"
#include "cli/manifest.h"
#include "common/contract.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cli {

int SchedulePlot(const SchedulePlotOptions& options) {
  const auto parsed = ReadManifest(options.manifest, options.set);
  if (!parsed.ok()) return FailWith(parsed.status());
  if (!parsed->job.spec.trainer) {
    return FailWith(absl::InvalidArgumentError(fmt::format(
        "{}: without spec.trainer the schedule is the program's own", options.manifest)));
  }
  training::v1alpha1::WorkerConfig config;
  config.trainer = *parsed->job.spec.trainer;
  config.checkpoint = parsed->job.spec.checkpoint;
  const std::filesystem::path workspace = std::filesystem::absolute(options.manifest).parent_path();
  setenv(contract::kEnvTrainerConfig, ToJson(config).dump().c_str(), /*overwrite=*/1);
  setenv(contract::kEnvWorkspace, workspace.c_str(), /*overwrite=*/1);
  std::vector<std::string> arguments;
  if (!options.svg.empty()) arguments.insert(arguments.end(), {"--svg", options.svg});
  if (options.samples > 0)
    arguments.insert(arguments.end(), {"--samples", fmt::format("{}", options.samples)});
  return BecomeCompanion("ringmaster-schedule-plot", std::move(arguments));
}

}  // namespace ringmaster::cli

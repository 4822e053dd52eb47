#include "cli/worker_environment.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/manifest.h"
#include "common/contract.h"
#include "common/status.h"

namespace ringmaster::cli {

absl::StatusOr<training::v1alpha1::TrainerConfig> TakeWorkersEnvironment(
    const std::string& manifest, const std::vector<std::string>& set, const std::string& what) {
  RM_ASSIGN_OR_RETURN(const api::ParsedJob parsed, ReadManifest(manifest, set));
  if (!parsed.job.spec.trainer) {
    return absl::InvalidArgumentError(
        fmt::format("{}: without spec.trainer {} is the program's own", manifest, what));
  }
  training::v1alpha1::WorkerConfig config;
  config.trainer = *parsed.job.spec.trainer;
  config.checkpoint = parsed.job.spec.checkpoint;
  const std::filesystem::path workspace = std::filesystem::absolute(manifest).parent_path();
  setenv(contract::kEnvTrainerConfig, ToJson(config).dump().c_str(), /*overwrite=*/1);
  setenv(contract::kEnvWorkspace, workspace.c_str(), /*overwrite=*/1);
  return config.trainer;
}

}  // namespace ringmaster::cli

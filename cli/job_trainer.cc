#include "cli/job_trainer.h"

#include <filesystem>

#include "cli/companion.h"
#include "cli/failure.h"
#include "cli/worker_environment.h"

namespace ringmaster::cli {

int BecomeTrainer(const std::string& manifest, const std::vector<std::string>& set,
                  const std::string& what, const std::vector<std::string>& arguments) {
  const auto trainer = TakeWorkersEnvironment(manifest, set, what);
  if (!trainer.ok()) return FailWith(trainer.status());
  if (!trainer->program) return BecomeCompanion("ringmaster-train", arguments);
  const auto workspace = std::filesystem::absolute(manifest).parent_path();
  return BecomeProgram(workspace / *trainer->program, arguments);
}

}  // namespace ringmaster::cli

#include "cli/explain_command.h"

#include <filesystem>

#include "cli/companion.h"
#include "cli/failure.h"
#include "cli/worker_environment.h"

namespace ringmaster::cli {
namespace {

int BecomeTrainer(const ExplainOptions& options, const std::string& flag) {
  const auto trainer = TakeWorkersEnvironment(options.manifest, options.set, "the network");
  if (!trainer.ok()) return FailWith(trainer.status());
  const std::vector<std::string> arguments = {flag, options.out};
  if (!trainer->program) return BecomeCompanion("ringmaster-train", arguments);
  const auto workspace = std::filesystem::absolute(options.manifest).parent_path();
  return BecomeProgram(workspace / *trainer->program, arguments);
}

}  // namespace

int ExplainGraph(const ExplainOptions& options) {
  return BecomeTrainer(options, "--dump-graph");
}

int ExplainProfile(const ExplainOptions& options) {
  return BecomeTrainer(options, "--profile");
}

}  // namespace ringmaster::cli

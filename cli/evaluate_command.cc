#include "cli/evaluate_command.h"

#include "cli/job_trainer.h"

namespace ringmaster::cli {

int Evaluate(const EvaluateOptions& options) {
  std::vector<std::string> arguments{"--evaluate"};
  if (options.as_json) arguments.push_back("--json");
  arguments.insert(arguments.end(), options.saved.begin(), options.saved.end());
  return BecomeTrainer(options.manifest, options.set, "the evaluation", arguments);
}

}  // namespace ringmaster::cli

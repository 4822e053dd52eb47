#include "cli/explain_command.h"

#include "cli/job_trainer.h"

namespace ringmaster::cli {
namespace {

constexpr char kWhat[] = "the network";

}  // namespace

int ExplainGraph(const ExplainOptions& options) {
  return BecomeTrainer(options.manifest, options.set, kWhat, {"--dump-graph", options.out});
}

int ExplainProfile(const ExplainOptions& options) {
  return BecomeTrainer(options.manifest, options.set, kWhat, {"--profile", options.out});
}

}  // namespace ringmaster::cli

// `ringmaster explain graph job.yaml`: what becomes of a job's network, stage by stage.
// `ringmaster explain profile job.yaml`: where the time of its steps goes.
#ifndef RINGMASTER_CLI_EXPLAIN_COMMAND_H_
#define RINGMASTER_CLI_EXPLAIN_COMMAND_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

struct ExplainOptions {
  std::string manifest;
  std::vector<std::string> set;
  std::string out;  // the folder for the files
};

// Each becomes the job's trainer (job_trainer.h), which writes the files
// (runtime/train/graph_dump.h, job_profile.h).
int ExplainGraph(const ExplainOptions& options);
int ExplainProfile(const ExplainOptions& options);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_EXPLAIN_COMMAND_H_

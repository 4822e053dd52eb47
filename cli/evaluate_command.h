// `ringmaster evaluate job.yaml SAVED...`: how right saved weights are on a job's held-out samples,
// each by itself and the mean of what they predict.
#ifndef RINGMASTER_CLI_EVALUATE_COMMAND_H_
#define RINGMASTER_CLI_EVALUATE_COMMAND_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

struct EvaluateOptions {
  std::string manifest;
  std::vector<std::string> saved;  // runtime/train/saved_weights.h
  std::vector<std::string> set;
  bool as_json = false;
};

// Becomes the job's trainer (job_trainer.h), which prints it (runtime/train/job_evaluation.h).
int Evaluate(const EvaluateOptions& options);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_EVALUATE_COMMAND_H_

// `ringmaster validate job.yaml`: everything that is wrong with a manifest, or what it will mean.
#ifndef RINGMASTER_CLI_VALIDATE_COMMAND_H_
#define RINGMASTER_CLI_VALIDATE_COMMAND_H_

#include <string>
#include <vector>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cli {

// Prints to standard output, problems to standard error. Returns the exit code.
int Validate(const std::string& manifest, const std::vector<std::string>& set);

// What a valid job means, a line or a table each: the shards, and for each number of workers how
// evenly they divide. Pure.
std::string ExplainJob(const std::string& name, const training::v1alpha1::TrainingJob& job);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_VALIDATE_COMMAND_H_

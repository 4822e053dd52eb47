// A worker's surroundings without a worker: for programs that look at a job instead of running it.
#ifndef RINGMASTER_CLI_WORKER_ENVIRONMENT_H_
#define RINGMASTER_CLI_WORKER_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cli {

// Reads and checks the manifest, with `set` over it, and puts into this process's environment what
// a worker of its job finds there: what to train, and the workspace, which is the manifest's
// folder. Gives spec.trainer. Errors are ReadManifest's (manifest.h), and kInvalidArgument for a
// job of a program of one's own, of which nobody knows `what` ("the schedule").
absl::StatusOr<training::v1alpha1::TrainerConfig> TakeWorkersEnvironment(
    const std::string& manifest, const std::vector<std::string>& set, const std::string& what);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_WORKER_ENVIRONMENT_H_

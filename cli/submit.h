// Bringing a manifest into the store of its run: new, resumed, or started over.
#ifndef RINGMASTER_CLI_SUBMIT_H_
#define RINGMASTER_CLI_SUBMIT_H_

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "operator/kube/client.h"

namespace ringmaster::cli {

enum class Submission { kCreated, kResumed };

// Creates the job, or updates the one that is there so that it goes on: the trainer must be the
// same, the number of workers and all else may have changed. kInvalidArgument names what differs
// in the trainer.
absl::StatusOr<Submission> Submit(kube::Client& client, const nlohmann::json& job);

// Whether a job has Succeeded or Failed: then there is nothing to resume.
bool IsOver(const nlohmann::json& job);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_SUBMIT_H_

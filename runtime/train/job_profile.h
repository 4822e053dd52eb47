// Where the time of a job's own step goes: files for people.
#ifndef RINGMASTER_RUNTIME_TRAIN_JOB_PROFILE_H_
#define RINGMASTER_RUNTIME_TRAIN_JOB_PROFILE_H_

#include <filesystem>

#include "absl/status/status.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Has one worker take steps of the job from its first weights on, for some seconds, on the job's
// data, in its batch and shards, and writes:
//   profile.txt  what a step takes, and Table (step_profile.h)
//   trace.json   a few further steps as a picture (step_trace.h)
// Makes the folder; files of these names are replaced. After Workload::CheckModel. Errors are
// LoneWorker's and those of files.
absl::Status ProfileSteps(const Workload& workload, kernels::Selection kernels,
                          const std::filesystem::path& folder);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_JOB_PROFILE_H_

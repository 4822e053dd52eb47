// The program ringmaster-train, and any trainer of the user's own: what its environment says,
// turned into a session.
#ifndef RINGMASTER_RUNTIME_TRAIN_PROGRAM_H_
#define RINGMASTER_RUNTIME_TRAIN_PROGRAM_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/ending.h"
#include "runtime/train/options.h"
#include "runtime/train/parts.h"

namespace ringmaster::training::v1alpha1 {
struct WorkerConfig;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::train {

// Parses RINGMASTER_TRAINER_CONFIG. kInvalidArgument with every problem and its path.
absl::StatusOr<training::v1alpha1::WorkerConfig> ParseWorkerConfig(const std::string& json);

// Reads the other variables (common/env.h). kInvalidArgument, or kNotFound where no address is as
// asked for, naming the variable.
absl::StatusOr<SessionOptions> ReadOptions();

// Instead of training the environment's job, writes its graphs into `folder` (graph_dump.h), or
// where the time of its steps goes (job_profile.h).
absl::Status DumpJob(Parts parts, const std::string& folder);
absl::Status ProfileJob(Parts parts, const std::string& folder);
// The same: how right `saved`, each a path, with @STEP behind a directory's where it is not the
// newest, are on its held-out samples (job_evaluation.h): a table, or JSON.
absl::StatusOr<std::string> EvaluateJob(Parts parts, std::span<const std::string> saved,
                                        bool as_json);

// The whole program but its exit: dials the launcher, serves metrics, runs the session with these
// parts. The metrics endpoint is still up afterwards, and a checkpoint may still be written; call
// once, and leave by std::quick_exit.
Ending RunTrainer(const Parts& parts);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_PROGRAM_H_

// LoneWorker: the one worker of a job, without operator, launcher, evaluation or checkpoints: what
// profiles and the benchmark (bench/) have take steps. They are the trainer's own (step_runner.h).
//
// Not thread-safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_LONE_WORKER_H_
#define RINGMASTER_RUNTIME_TRAIN_LONE_WORKER_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/graph/profile.h"
#include "runtime/train/lone_communicator.h"
#include "runtime/train/step_runner.h"

namespace ringmaster::train {

// Where one step's time went.
struct StepTimes {
  double compute_seconds = 0;  // samples, forward, loss, backward
  double reduce_seconds = 0;   // the sum over one worker
  double commit_seconds = 0;   // the look for numbers that are none, optimizer, statistics, ledger

  double all() const { return compute_seconds + reduce_seconds + commit_seconds; }
};

class LoneWorker {
 public:
  // Before the first step. `workload` outlives the worker; after Workload::CheckModel. Errors are
  // Replica::Create's and StepRunner::Create's.
  static absl::StatusOr<std::unique_ptr<LoneWorker>> Create(const Workload& workload,
                                                            kernels::Selection kernels);

  // kDataLoss: the loss, a gradient or a statistic is no finite number, so the times of further
  // steps would mean nothing.
  absl::Status Step();
  // The same with looks at the clock between its parts, which a step of microseconds feels.
  absl::StatusOr<StepTimes> StepInParts();

  // What later steps add their times to; null: nothing. After the first step.
  void SetProfile(graph::Profile* profile) { shards_.SetProfile(profile); }

  const Workload& workload() const { return workload_; }
  Replica& replica() { return replica_; }
  StepRunner& steps() { return *steps_; }

 private:
  LoneWorker(const Workload& workload, Replica replica, kernels::Selection kernels);
  absl::Status Commit();

  const Workload& workload_;
  // Each refers to those above it.
  Replica replica_;
  ShardRunner shards_;
  const DebugSwitches debug_;
  std::optional<LoneCommunicator> communicator_;
  std::unique_ptr<StepRunner> steps_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_LONE_WORKER_H_

// Where a step's time goes, op by op: `ringmaster explain profile` says it of a job's own step, the
// benchmark (bench/) of a network on samples that are made up.
#ifndef RINGMASTER_RUNTIME_TRAIN_STEP_PROFILE_H_
#define RINGMASTER_RUNTIME_TRAIN_STEP_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/profile.h"
#include "runtime/train/lone_worker.h"

namespace ringmaster::train {

struct StepProfile {
  int64_t steps = 0;
  StepTimes times;                    // of a step, the mean
  std::vector<graph::OpProfile> ops;  // that were run, of all steps and all their shards

  // An op's time in a step.
  double SecondsOf(const graph::OpProfile& op) const;
  // What computing takes beside the ops: copying samples, the executor, sums that shards wait for.
  double SecondsBesideOps() const;
};

// What a step does beside the network's ops, as tables have it.
inline constexpr char kBesideOps[] = "(samples, executor)";
inline constexpr char kSumOverWorkers[] = "(sum over workers)";
inline constexpr char kOptimizer[] = "(optimizer)";

// Whether to time another step, after `steps` that took `taken` seconds together: for `seconds`,
// but no fewer than five; of a network whose steps take so long that five would be tedious, two.
bool WantsAnotherStep(int64_t steps, double taken, double seconds);

// Has the worker take steps, as many as WantsAnotherStep asks for. After its first step, and better
// after a few. Errors are the step's.
absl::StatusOr<StepProfile> TakeProfile(LoneWorker& worker, double seconds);

// For people: each op with its calls, its time and its share of a step, and the kernel that runs
// it; those of the forward pass, then those of the backward pass, what takes longest first; then
// what a step does beside them.
std::string Table(const StepProfile& profile);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_STEP_PROFILE_H_

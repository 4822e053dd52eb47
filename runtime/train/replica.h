// Replica: everything that lasts from step to step, as this rank holds it: weights, the optimizer's
// memory, running statistics and counters. Every rank's replica has the same bits after every step.
//
// The commit rule: nothing here changes while a step is computed or reduced. Commit takes the sums
// over the whole batch, when they are on this rank, and is purely local.
//
// Not thread-safe. It must not outlive its workload.
#ifndef RINGMASTER_RUNTIME_TRAIN_REPLICA_H_
#define RINGMASTER_RUNTIME_TRAIN_REPLICA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/loader.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/sample_ledger.h"
#include "runtime/optim/optimizer.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/float_buffer.h"
#include "runtime/train/improvement.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// The sums of one step over all samples of the batch.
struct StepSums {
  std::span<const float> gradients;   // layout().parameter_floats
  std::span<const float> statistics;  // layout().state_floats; weighted by samples
  int64_t statistics_samples = 0;     // what they are divided by
  double mean_loss = 0;
  // optim::SumOfSquares of the gradients, where somebody has added it up.
  std::optional<double> sum_of_squares{};
};

class Replica {
 public:
  // At step 0. kInvalidArgument when the optimizer's configuration makes no sense.
  static absl::StatusOr<Replica> Create(const Workload& workload);

  // Back to step 0: the values that the seed gives.
  void Reset();

  // Applies a step that took the samples `rows`. `skip` leaves the weights and statistics as they
  // are; the step and its samples count all the same, but not as one of the optimizer's updates.
  absl::Status Commit(const StepSums& sums, std::span<const uint32_t> rows, bool skip);

  uint64_t step() const { return step_; }
  double loss() const { return loss_; }  // of the last step
  // The last one; nothing before the first.
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }
  // Takes note of an evaluation of the present step.
  void Evaluated(const Evaluation& evaluation);
  const Improvement& improvement() const { return improvement_; }
  // The job's metric at this very step; nothing where it was not evaluated.
  std::optional<double> metric_value() const;
  uint64_t skipped_steps() const { return skipped_steps_; }

  std::span<float> weights() { return weights_.span(); }
  std::span<float> states() { return states_.span(); }

  // For a checkpoint: what it must hold, in a fixed order. Views of this object's memory.
  std::vector<checkpoint::TensorView> Tensors();
  checkpoint::Metadata Counters() const;
  // Takes a checkpoint's content; all of it or, on an error, nothing.
  //   kFailedPrecondition  it is of another network, optimizer, data, seed or batch
  //   kDataLoss            its counters are not what we write
  absl::Status Restore(const checkpoint::Checkpoint& checkpoint);
  // Takes parameters and running statistics alone, all of them or, on an error, none; but not those
  // whose name matches one of `except` (common/text.h), which stay as they are.
  //   kFailedPrecondition  one is missing or has another shape or type
  //   kInvalidArgument     an `except` that matches nothing, by its place
  absl::Status TakeWeights(const checkpoint::Checkpoint& checkpoint,
                           std::span<const std::string> except);

  // Has the next evaluation be the first one by which training stops early and the best checkpoint
  // is known.
  void ForgetImprovement();

  // sha256, in hexadecimal, over parameters and running statistics in the order of their names,
  // each name followed by a zero byte.
  std::string WeightsDigest();

 private:
  Replica(const Workload& workload, std::unique_ptr<optim::Optimizer> optimizer);

  // Parameters and running statistics, as they are in a checkpoint.
  std::vector<checkpoint::TensorView> WeightTensors();

  const Workload* workload_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  FloatBuffer weights_;
  FloatBuffer states_;
  data::SampleLedger ledger_;
  uint64_t step_ = 0;
  double loss_ = 0;
  std::optional<Evaluation> evaluation_;
  Improvement improvement_;
  uint64_t skipped_steps_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_REPLICA_H_

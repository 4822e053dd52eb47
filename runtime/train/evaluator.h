// Evaluates the held-out samples, shared by all ranks, each sample once.
//
// The samples are cut into fixed blocks; a rank computes a range of them, each in passes of a fixed
// number of samples (Workload::evaluated_at_once), and the blocks' sums are added in the fixed tree
// over blocks. The area under the curve is no sum: every rank gathers all
// scores, 16 bytes for each label, and computes it alike. So the result does not depend on the
// world size.
#ifndef RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_
#define RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/data/sample_stream.h"
#include "runtime/device/memory.h"
#include "runtime/graph/executor.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// kInvalidArgument, with the field and what to take instead, where evaluations of the workload's
// data do not measure the metric that its configuration names.
absl::Status CheckMetric(const Workload& workload);

// What is measured of a workload's data beside loss and accuracy.
struct Measured {
  bool top5 = false;
  bool perplexity = false;
  bool auroc = false;
};
Measured MeasuredOf(const Workload& workload);

// Not thread-safe; must not outlive the workload and the buffers.
class Evaluator {
 public:
  // Reads the replica's `weights` and running statistics `states` at each Compute.
  Evaluator(const Workload& workload, kernels::Selection kernels, std::span<float> weights,
            std::span<float> states);

  // Computes this rank's share of the samples, of the weights as they are. Errors are this rank's
  // own, whatever the communicator does meanwhile; kInvalidArgument: the data is wrong, with the
  // sample: "the data is wrong in held-out sample 17: label 3 is not in 0..1 (2 classes)".
  absl::Status Compute(const collectives::Communicator& communicator);

  // After Compute on every rank of the round: the result, of the weights of `step`; nothing where
  // no sample is held out. Every rank calls it. Blocks and fails as the communicator's operations
  // do.
  absl::StatusOr<std::optional<Evaluation>> Reduce(int64_t step,
                                                   collectives::Communicator& communicator);

  // What hears of every score that a Compute finds, pass by pass: as many rows of scores as there
  // are labels in `rows`, or a score for each label where labels are independent.
  using Listener = std::function<void(data::RowRange rows, std::span<const float> scores,
                                      std::span<const int32_t> labels)>;
  void Tell(Listener listener) { listener_ = std::move(listener); }

  // What a Compute on this rank takes beside weights and statistics.
  size_t bytes(const collectives::Communicator& communicator) const;

  // Gives back the memory of what has run, for others to ask how much there is. The next Compute
  // prepares its kernels again.
  void Release();

 private:
  struct Prepared {
    std::unique_ptr<graph::Executor> executor;
    tensor::Tensor inputs;
    tensor::Tensor labels;
  };
  struct Sums {
    double loss = 0;
    double correct = 0;
    double in_top5 = 0;
  };
  // How many numbers of an array each rank of the round has.
  std::vector<size_t> ScoresByRank(int world) const;
  absl::StatusOr<Prepared*> PreparedFor(int64_t samples);
  absl::StatusOr<Sums> RunBlock(data::RowRange rows);
  absl::StatusOr<Sums> RunPass(data::RowRange rows);
  // Adds this block's samples to scores_.
  void AddScores(std::span<const float> logits, std::span<const int32_t> labels);
  // Sets auroc and label_aurocs.
  absl::Status MeasureAuroc(collectives::Communicator& communicator, Evaluation& result);

  const Workload& workload_;
  const kernels::Selection kernels_;
  const std::span<float> weights_;
  const std::span<float> states_;
  const bool has_top5_;
  const bool has_auroc_;
  Listener listener_;
  std::shared_ptr<device::Buffer> arena_;
  std::map<int64_t, Prepared> prepared_;  // by samples: a whole pass, and the last one
  // Over all blocks: loss, and labels that were first, and among the first five. None where there
  // are no samples.
  std::optional<collectives::OrderedSum<double>> sum_;
  // Of this rank's samples, label by label: score and whether it holds by turns. One label where
  // the data has two classes.
  std::vector<double> scores_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_

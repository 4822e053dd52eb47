// Computes what the virtual shards of a step that this worker owns contribute to the sums:
// gradients, batch norm's statistics, the loss, and the flags of this rank. One shard after another
// in the same memory, or, where shards wait for one another at batch norms
// (Workload::synchronises), all of them together, each in memory of its own.
//
// Not thread-safe. It must not outlive its workload and the replica's buffers that it is given.
#ifndef RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_
#define RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/train/shard_program.h"

namespace ringmaster::train {

// Adds up what all shards of the step wait for: `own` has what each of this worker's adds, in their
// order, and `total` takes the sum over all workers' shards. `point` counts the sums of a step.
using AddOverShards = absl::FunctionRef<absl::Status(size_t point, std::string_view name,
                                                     std::span<const std::span<const double>> own,
                                                     std::span<double> total)>;

class ShardRunner {
 public:
  // `weights` are the replica's, read by every run.
  ShardRunner(const Workload& workload, kernels::Selection kernels, std::span<float> weights);

  // Computes rows `range` of a batch, of which `samples` are all the rows' samples and `positions`
  // their places in the sample stream; as ShardProgram::Run.
  absl::StatusOr<StepVector<float>> Run(data::RowRange range, std::span<const uint32_t> samples,
                                        std::span<const uint64_t> positions,
                                        const GradientsReady* ready);

  // Has RunTogether compute so many shards from now on, each of a size of its own. What earlier
  // runs took is given back before `available_memory` is asked: a worker whose shards become fewer
  // has room for them, and shards of other sizes do not lie beside the last ones. Errors are
  // Workload::CheckTogether's.
  absl::Status PrepareTogether(int shards,
                               const std::function<std::optional<int64_t>()>& available_memory);

  // Has Run compute a share of so many samples from now on, of a batch that is not cut into shards.
  // Where it is another size than the last, as PrepareTogether; errors are Workload::CheckShare's.
  absl::Status PrepareShare(int64_t samples,
                            const std::function<std::optional<int64_t>()>& available_memory);

  // Computes as many shards, rows `ranges`, side by side. `add` is called wherever they wait; every
  // rank of the round does so alike. The results are this object's memory, in the order of
  // `ranges`, until the next run. Errors of `add` are passed on, the others are this rank's own.
  absl::StatusOr<std::span<const StepVector<float>>> RunTogether(
      std::span<const data::RowRange> ranges, std::span<const uint32_t> samples,
      std::span<const uint64_t> positions, AddOverShards add);

  // The shard `place` of those that this worker owns again, up to the first number that is not
  // finite (Executor::FindNonFinite).
  absl::StatusOr<std::optional<graph::NonFinite>> FindNonFinite(
      int place, data::RowRange range, std::span<const uint32_t> samples,
      std::span<const uint64_t> positions);

  // Bytes that runs take beside the weights: values and gradients of all that is computed together.
  size_t bytes() const { return bytes_; }

  // ShardProgram::SetProfile; of shards that are computed together, for all of them.
  void SetProfile(graph::Profile* profile);

 private:
  void MakePrograms(int count);
  // Runs each up to where it waits; false at the end. Sums that differ are an error.
  absl::StatusOr<bool> AdvanceAll();

  const Workload& workload_;
  const kernels::Selection kernels_;
  const std::span<float> weights_;
  std::vector<std::unique_ptr<ShardProgram>> programs_;  // as many as are computed together
  int64_t share_ = 0;                                    // what PrepareShare has found room for
  size_t bytes_;
  // What each of them waits for, and what it adds there.
  std::vector<graph::ShardSum> sums_;
  std::vector<std::span<const double>> own_;
  std::vector<StepVector<float>> contributions_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_

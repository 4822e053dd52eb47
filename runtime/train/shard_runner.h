// Computes what one virtual shard of a step contributes to the sums: gradients, batch norm's
// statistics, the loss, and the flags of this rank.
//
// Everything that is summed over the batch lies in one vector and so goes through one tree:
//
//   [ gradients | statistics weighted by samples | loss, drain, part, checkpoint ]
//
// Not thread-safe. It must not outlive its workload and the replica's buffers that it is given.
#ifndef RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_
#define RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/sample_stream.h"
#include "runtime/graph/executor.h"
#include "runtime/train/float_buffer.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Places in the vector, behind gradients and statistics.
enum class Scalar : size_t { kLoss, kDrain, kPart, kCheckpoint };
inline constexpr size_t kScalars = 4;

// A vector of that layout, cut into its parts.
template <typename Float>
class StepVector {
 public:
  StepVector(const nn::Model& layout, std::span<Float> values)
      : gradients_(layout.parameter_floats), states_(layout.state_floats), values_(values) {}

  static size_t Size(const nn::Model& layout) {
    return layout.parameter_floats + layout.state_floats + kScalars;
  }

  std::span<Float> all() const { return values_; }
  std::span<Float> gradients() const { return values_.first(gradients_); }
  std::span<Float> statistics() const { return values_.subspan(gradients_, states_); }
  Float& operator[](Scalar scalar) const {
    return values_[gradients_ + states_ + static_cast<size_t>(scalar)];
  }

 private:
  size_t gradients_;
  size_t states_;
  std::span<Float> values_;
};

// Told during a shard's backward pass: the gradients from float `from` of the vector on are final.
// `from` falls from call to call.
using GradientsReady = std::function<void(std::span<const float> contribution, size_t from)>;

class ShardRunner {
 public:
  // `weights` are the replica's, read by every Run.
  ShardRunner(const Workload& workload, kernels::Selection kernels, std::span<float> weights);

  // Computes rows `range` of a batch, of which `samples` are all the rows' samples and `positions`
  // their places in the sample stream. The first shard of a new size prepares its kernels. The
  // result is this object's memory, overwritten by the next call; its flags are zero. `ready`, if
  // there is one, hears of gradients while others are still computed, on this thread.
  absl::StatusOr<StepVector<float>> Run(data::RowRange range, std::span<const uint32_t> samples,
                                        std::span<const uint64_t> positions,
                                        const GradientsReady& ready);

  // The same again, up to the first number that is not finite (Executor::FindNonFinite).
  absl::StatusOr<std::optional<graph::NonFinite>> FindNonFinite(
      data::RowRange range, std::span<const uint32_t> samples, std::span<const uint64_t> positions);

  // Executor::SetProfile for shards of `samples` samples, of which one must have been run.
  void SetProfile(int64_t samples, graph::Profile* profile);

 private:
  struct Prepared {
    std::unique_ptr<graph::Executor> executor;
    tensor::Tensor inputs;
    tensor::Tensor labels;
  };
  absl::StatusOr<Prepared*> PreparedFor(int64_t samples);
  // The same with those samples in it.
  absl::StatusOr<Prepared*> FilledWith(std::span<const uint32_t> samples);
  void Complete(size_t parameter);

  const Workload& workload_;
  const kernels::Selection kernels_;
  const std::span<float> weights_;
  FloatBuffer contribution_;
  std::map<int64_t, Prepared> prepared_;  // by samples; shards have at most two sizes

  // Of the run in progress: who hears of it, which parameters' gradients are complete, and from
  // which parameter on all are.
  const GradientsReady* ready_ = nullptr;
  std::vector<bool> complete_;
  size_t complete_from_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_SHARD_RUNNER_H_

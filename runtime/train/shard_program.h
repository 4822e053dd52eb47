// One shard's step as it is computed on this worker: the network, compiled for the shard's size,
// its memory, which shards of all sizes share, and the vector of what the shard contributes to the
// sums.
//
// Not thread-safe. It must not outlive its workload and the replica's buffers that it is given.
#ifndef RINGMASTER_RUNTIME_TRAIN_SHARD_PROGRAM_H_
#define RINGMASTER_RUNTIME_TRAIN_SHARD_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/data/sample_stream.h"
#include "runtime/device/memory.h"
#include "runtime/graph/executor.h"
#include "runtime/train/float_buffer.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Places in the vector, behind gradients and statistics.
enum class Scalar : size_t { kLoss, kDrain, kPart, kCheckpoint };
inline constexpr size_t kScalars = 4;

// A vector of everything that is summed over the batch, which so goes through one tree, cut into
// its parts:
//
//   [ gradients | statistics weighted by samples | loss, drain, part, checkpoint ]
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
using GradientsReady = absl::FunctionRef<void(std::span<const float> contribution, size_t from)>;

// A shard's rows of a batch, of which `samples` are all the rows' samples and `positions` their
// places in the sample stream.
struct BatchPart {
  data::RowRange range;
  std::span<const uint32_t> samples;
  std::span<const uint64_t> positions;
};

class ShardProgram {
 public:
  // `weights` are the replica's, read by every run.
  ShardProgram(const Workload& workload, graph::CompileOptions options, std::span<float> weights);
  ShardProgram(const ShardProgram&) = delete;  // the executor calls it
  ShardProgram& operator=(const ShardProgram&) = delete;

  // Computes the shard, for itself. The first of a new size prepares its kernels, in place of those
  // for the size before the last one: shards of a round have at most two. The result is
  // this object's memory, overwritten by the next run; its flags are zero. `ready`, unless it is
  // null, hears of gradients while others are still computed, on this thread.
  absl::StatusOr<StepVector<float>> Run(const BatchPart& part, const GradientsReady* ready);

  // The same in pieces, where shards wait for one another: as graph::Executor's Start and Advance,
  // after the last of which Finish has the result. `part` refers to what must live till then.
  absl::Status Start(const BatchPart& part);
  std::optional<graph::ShardSum> Advance();
  absl::StatusOr<StepVector<float>> Finish();

  // A run again, up to the first number that is not finite (graph::Executor::FindNonFinite).
  absl::StatusOr<std::optional<graph::NonFinite>> FindNonFinite(const BatchPart& part);

  // Executor::SetProfile for shards of all sizes that it is prepared for by now.
  void SetProfile(graph::Profile* profile);

  // Bytes that a step's values take, for the largest shard so far, and the number of sizes that it
  // is prepared for.
  size_t value_bytes() const { return options_.arena->bytes(); }
  size_t sizes() const { return prepared_.size(); }

 private:
  struct Prepared {
    std::unique_ptr<graph::Executor> executor;
    tensor::Tensor inputs;
    tensor::Tensor labels;
    tensor::Tensor loss_sum;
    uint64_t last_use = 0;  // counts calls of PreparedFor
  };
  absl::StatusOr<Prepared*> PreparedFor(int64_t samples);
  absl::StatusOr<Prepared> Prepare(int64_t samples);
  // The one for its size, with its samples in it.
  absl::StatusOr<Prepared*> FilledWith(const BatchPart& part);
  graph::RunContext ContextOf(const BatchPart& part) const;
  void ListenFor(const GradientsReady* ready);
  void Complete(size_t parameter);

  const Workload& workload_;
  const graph::CompileOptions options_;
  const std::span<float> weights_;
  FloatBuffer contribution_;
  std::map<int64_t, Prepared> prepared_;  // by samples
  uint64_t uses_ = 0;

  // Of the run in progress: its executor and samples, who hears of it, which parameters' gradients
  // are complete, and from which parameter on all are.
  Prepared* running_ = nullptr;
  int64_t samples_ = 0;
  const GradientsReady* ready_ = nullptr;
  std::vector<bool> complete_;
  size_t complete_from_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_SHARD_PROGRAM_H_

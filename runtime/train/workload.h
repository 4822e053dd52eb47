// Workload: what a job trains, read and checked before any worker trains: its data, its network's
// layout, and the length of the run. The same on every rank, whatever the world size.
//
// Immutable once made; reading it from several threads is safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_WORKLOAD_H_
#define RINGMASTER_RUNTIME_TRAIN_WORKLOAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/device/available_memory.h"
#include "runtime/graph/executor.h"
#include "runtime/kernels/kernel.h"
#include "runtime/nn/model.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/parts.h"

namespace ringmaster::training::v1alpha1 {
struct TrainerConfig;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::graph {
struct Requirements;
}  // namespace ringmaster::graph

namespace ringmaster::train {

// The length of a run over so many training samples.
optim::RunLength RunLengthOf(const training::v1alpha1::TrainerConfig& config, uint32_t samples);

// What a job can do where its model needs more memory than there is.
inline constexpr std::string_view kAdviceOnMemory =
    "cut the batch into more shards (batch.shards), make it smaller, or give the workers more "
    "memory";

class Workload {
 public:
  // Reads the data whole. `config` must outlive the workload; `parts` are those that it may name.
  // Errors are data::Load's and LoadCustom's (custom.h).
  static absl::StatusOr<Workload> Load(const training::v1alpha1::TrainerConfig& config,
                                       const std::string& workspace, Parts parts = {});

  // Of data that was made instead of read.
  static Workload Over(const training::v1alpha1::TrainerConfig& config, data::Splits splits) {
    return {config, std::move(splits), {}};
  }

  // Builds the network and prepares its kernels once, to see that training and evaluation fit the
  // data and the memory (unknown: any will do), before anything large is allocated.
  //   kInvalidArgument, kUnimplemented  naming the layer; or there is no batch norm to synchronise
  //   kResourceExhausted                with what the network needs, and what for: more than there
  //                                     is, with `advice` behind it, or than stepMemoryBytes even
  //                                     with what is computed again
  //   kInvalidArgument                  the same, where it would not help to try again: there is
  //                                     never as much, and no number of workers makes shards
  //                                     smaller
  absl::Status CheckModel(kernels::Selection kernels,
                          std::optional<device::MemoryRoom> memory = std::nullopt,
                          std::string_view advice = kAdviceOnMemory);

  // The network for `batch` samples; where it trains, with its backward pass unless `gradients` is
  // off.
  absl::StatusOr<nn::Model> Build(nn::Mode mode, int64_t batch, bool gradients = true) const;

  // How a shard's step is compiled: with these kernels, in the memory that the job gives it, which
  // it shares with the others of `together` shards whose values are held at once, with all
  // gradients in one block. After CheckModel.
  graph::CompileOptions StepOptions(kernels::Selection kernels, int together = 1) const;

  // Whether the shards of a step wait for one another at batch norms, so that a worker computes all
  // of its own at once.
  bool synchronises() const;
  // Whether so many shards' values fit into the memory at once, beside an evaluation's.
  // kResourceExhausted as CheckModel has it; otherwise the bytes of values and gradients. After
  // CheckModel, and with nothing of a step or an evaluation in memory yet.
  absl::StatusOr<size_t> CheckTogether(kernels::Selection kernels, int together,
                                       std::optional<int64_t> available_memory) const;
  // The same for one worker's share of a batch that is not cut into shards, whose size follows from
  // the number of workers.
  absl::StatusOr<size_t> CheckShare(kernels::Selection kernels, int64_t samples,
                                    std::optional<int64_t> available_memory) const;

  const training::v1alpha1::TrainerConfig& config() const { return *config_; }
  const Parts& parts() const { return parts_; }
  const data::Dataset& train() const { return *splits_.train; }
  const data::Dataset& held_out() const { return *splits_.held_out; }
  const std::string& data_fingerprint() const { return splits_.fingerprint; }

  int64_t batch() const;
  uint64_t seed() const;
  uint64_t total_steps() const { return run_length_.total_steps; }
  const optim::RunLength& run_length() const { return run_length_; }
  // Labels in a batch: what sums are divided by.
  double labels_per_batch() const;
  double EpochsAfter(uint64_t steps) const;

  // After CheckModel: where parameters and states lie in flat buffers.
  const nn::Model& layout() const { return layout_; }
  // After CheckModel: how many held-out samples are computed at once; 0 where there are none. It
  // divides kEvaluationBlock, and depends on the network and the data alone, so that the bits of
  // the result do.
  int64_t evaluated_at_once() const { return evaluated_at_once_; }
  // After CheckModel, in bytes: what lasts from step to step (weights and what the optimizer keeps;
  // a custom optimizer's is not known), values and gradients of one shard, and what an evaluation
  // takes beside.
  size_t lasting_bytes() const;
  size_t shard_bytes() const { return shard_bytes_; }
  size_t evaluation_bytes() const { return evaluation_bytes_; }
  // A digest of what decides the bits of this worker's kernels: implementations, the library's
  // release, and threads.
  const std::string& kernels_digest() const { return kernels_digest_; }
  // "lenet-bn, 61,514 parameters"
  std::string Describe() const;
  // What all ranks of a round must have in common, as a digest.
  std::string Fingerprint() const;

 private:
  Workload(const training::v1alpha1::TrainerConfig& config, data::Splits splits, Parts parts);
  // Of a shard's network.
  absl::StatusOr<graph::Requirements> StepRequirements(const nn::Model& shard,
                                                       kernels::Selection kernels,
                                                       int together) const;
  absl::StatusOr<size_t> CheckShards(const nn::Model& shard, kernels::Selection kernels,
                                     int together, std::optional<int64_t> available_memory,
                                     std::string_view advice) const;
  absl::Status PlanEvaluation(kernels::Selection kernels);
  absl::Status CheckMemory(const graph::Requirements& step, const device::MemoryRoom& room,
                           std::string_view advice) const;

  const training::v1alpha1::TrainerConfig* config_;
  data::Splits splits_;
  Parts parts_;
  optim::RunLength run_length_;
  nn::Model layout_;
  int64_t evaluated_at_once_ = 0;
  size_t evaluation_bytes_ = 0;
  size_t shard_bytes_ = 0;
  std::string kernels_digest_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_WORKLOAD_H_

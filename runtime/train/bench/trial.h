// A trainer of one worker without operator, launcher or files: what the benchmark steps.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/graph/profile.h"
#include "runtime/train/bench/catalogue.h"
#include "runtime/train/step_runner.h"

namespace ringmaster::train::bench {

// Where one step's time went.
struct StepTimes {
  double compute_seconds = 0;  // samples, forward, loss, backward
  double reduce_seconds = 0;   // the sum over one worker
  double commit_seconds = 0;   // the look for numbers that are none, optimizer, statistics, ledger

  double total() const { return compute_seconds + reduce_seconds + commit_seconds; }
};

// Not thread-safe.
class Trial {
 public:
  // Steps draw from `samples` samples, of which `distinct` differ.
  //   kInvalidArgument, kUnimplemented  the network cannot be built, or does not fit the samples;
  //                                     the message names the layer, or the known networks,
  //                                     or the batch cannot be cut into shards of one size
  //   kFailedPrecondition               this process already uses another number of threads
  static absl::StatusOr<std::unique_ptr<Trial>> Make(Subject subject, uint32_t distinct,
                                                     uint32_t samples, kernels::Selection kernels);

  // kDataLoss: the loss is no finite number, so the times of further steps would mean nothing.
  absl::StatusOr<StepTimes> Step();

  // What later steps add their times to; null: nothing. After the first step.
  void SetProfile(graph::Profile* profile) {
    shards_->SetProfile(workload_.batch() / shard_count_, profile);
  }

  const Workload& workload() const { return workload_; }
  Replica& replica() { return *replica_; }
  StepRunner& steps() { return *steps_; }

 private:
  Trial(std::unique_ptr<Subject> subject, Workload workload, int shard_count)
      : subject_(std::move(subject)), workload_(std::move(workload)), shard_count_(shard_count) {}

  // Each refers to those above it.
  const std::unique_ptr<Subject> subject_;
  const Workload workload_;
  const int shard_count_;  // that one step computes, one after another
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<ShardRunner> shards_;
  const DebugSwitches debug_;
  std::unique_ptr<collectives::tcp::Listener> listener_;
  std::unique_ptr<collectives::Communicator> communicator_;
  std::unique_ptr<StepRunner> steps_;
};

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_

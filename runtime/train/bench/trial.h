// A network on samples that are made up, and the worker that steps through them: what the benchmark
// times.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/train/bench/catalogue.h"
#include "runtime/train/lone_worker.h"

namespace ringmaster::train::bench {

// Not thread-safe.
class Trial {
 public:
  // Steps draw from `samples` samples, of which `distinct` differ.
  //   kInvalidArgument, kUnimplemented  the network cannot be built, or does not fit the samples;
  //                                     the message names the layer, or the known networks,
  //                                     or the batch cannot be cut into shards of one size
  //   kResourceExhausted                a step needs more memory than there is, with the numbers
  //                                     and what to do
  //   kFailedPrecondition               this process already uses another number of threads
  static absl::StatusOr<std::unique_ptr<Trial>> Make(Subject subject, uint32_t distinct,
                                                     uint32_t samples, kernels::Selection kernels);

  const Workload& workload() const { return workload_; }
  LoneWorker& worker() { return *worker_; }

 private:
  Trial(std::unique_ptr<Subject> subject, Workload workload)
      : subject_(std::move(subject)), workload_(std::move(workload)) {}

  // Each refers to those above it.
  const std::unique_ptr<Subject> subject_;
  const Workload workload_;
  std::unique_ptr<LoneWorker> worker_;
};

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_TRIAL_H_

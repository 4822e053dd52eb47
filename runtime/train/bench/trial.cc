#include "runtime/train/bench/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/device/threads.h"
#include "runtime/train/bench/synthetic_data.h"

namespace ringmaster::train::bench {
namespace {

namespace config = training::v1alpha1;
using SteadyClock = std::chrono::steady_clock;

double Seconds(SteadyClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

collectives::CommunicatorOptions Alone(const std::string& address) {
  collectives::CommunicatorOptions round;
  round.job = "bench/train";
  round.round = 1;
  round.rank = 0;
  round.members = {{.address = address, .pod_uid = "bench"}};
  round.key = "nobody else takes part in it";
  return round;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trial>> Trial::Make(Subject subject, uint32_t distinct,
                                                   uint32_t samples, kernels::Selection kernels) {
  auto kept = std::make_unique<Subject>(std::move(subject));
  RM_RETURN_IF_ERROR(device::SetThreadCount(kept->config.threads_per_worker));
  const config::Batch& batch = kept->config.batch;
  const int shards = batch.shards.value_or(1);
  if (shards > 0 && batch.size % shards != 0) {
    return absl::InvalidArgumentError(
        fmt::format("a batch of {} cannot be cut into {} shards of one size", batch.size, shards));
  }
  Workload workload =
      Workload::Over(kept->config, MakeSyntheticData(kept->samples, distinct, samples));
  RM_RETURN_IF_ERROR(workload.CheckModel(kernels));
  // The replica refers to the workload, which therefore has its place first.
  std::unique_ptr<Trial> trial(
      new Trial(std::move(kept), std::move(workload), std::max(shards, 1)));
  RM_ASSIGN_OR_RETURN(Replica replica, Replica::Create(trial->workload_));
  trial->replica_ = std::make_unique<Replica>(std::move(replica));
  trial->shards_ =
      std::make_unique<ShardRunner>(trial->workload_, kernels, trial->replica_->weights());
  RM_ASSIGN_OR_RETURN(trial->listener_, collectives::tcp::Listener::Open("127.0.0.1:0"));
  RM_ASSIGN_OR_RETURN(
      trial->communicator_,
      collectives::Communicator::Create(Alone(trial->listener_->address()), *trial->listener_));
  RM_ASSIGN_OR_RETURN(trial->steps_, StepRunner::Create({.workload = trial->workload_,
                                                         .replica = *trial->replica_,
                                                         .shards = *trial->shards_,
                                                         .debug = trial->debug_},
                                                        shards, *trial->communicator_));
  return trial;
}

absl::StatusOr<StepTimes> Trial::Step() {
  const auto begin = SteadyClock::now();
  RM_RETURN_IF_ERROR(steps_->Compute(nullptr));
  const auto computed = SteadyClock::now();
  RM_RETURN_IF_ERROR(steps_->Reduce().status());
  const auto reduced = SteadyClock::now();
  if (!steps_->finite()) {
    return absl::DataLossError(fmt::format("the loss of step {} is {}: nothing can be measured",
                                           replica_->step() + 1, steps_->mean_loss()));
  }
  RM_RETURN_IF_ERROR(steps_->Commit(false));
  return StepTimes{.compute_seconds = Seconds(computed - begin),
                   .reduce_seconds = Seconds(reduced - computed),
                   .commit_seconds = Seconds(SteadyClock::now() - reduced)};
}

}  // namespace ringmaster::train::bench

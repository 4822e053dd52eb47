#include "runtime/train/lone_worker.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::train {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsBetween(SteadyClock::time_point begin, SteadyClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

LoneWorker::LoneWorker(const Workload& workload, Replica replica, kernels::Selection kernels)
    : workload_(workload),
      replica_(std::move(replica)),
      shards_(workload, kernels, replica_.weights()) {}

absl::StatusOr<std::unique_ptr<LoneWorker>> LoneWorker::Create(const Workload& workload,
                                                               kernels::Selection kernels) {
  RM_ASSIGN_OR_RETURN(Replica replica, Replica::Create(workload));
  std::unique_ptr<LoneWorker> worker(new LoneWorker(workload, std::move(replica), kernels));
  RM_ASSIGN_OR_RETURN(worker->communicator_, LoneCommunicator::Create());
  RM_ASSIGN_OR_RETURN(worker->steps_, StepRunner::Create({.workload = workload,
                                                          .replica = worker->replica_,
                                                          .shards = worker->shards_,
                                                          .debug = worker->debug_},
                                                         workload.config().batch.shards.value_or(0),
                                                         **worker->communicator_));
  return worker;
}

absl::Status LoneWorker::Step() {
  RM_RETURN_IF_ERROR(steps_->Compute(nullptr));
  RM_RETURN_IF_ERROR(steps_->Reduce().status());
  return Commit();
}

absl::StatusOr<StepTimes> LoneWorker::StepInParts() {
  const auto begin = SteadyClock::now();
  RM_RETURN_IF_ERROR(steps_->Compute(nullptr));
  const auto computed = SteadyClock::now();
  RM_RETURN_IF_ERROR(steps_->Reduce().status());
  const auto reduced = SteadyClock::now();
  RM_RETURN_IF_ERROR(Commit());
  return StepTimes{.compute_seconds = SecondsBetween(begin, computed),
                   .reduce_seconds = SecondsBetween(computed, reduced),
                   .commit_seconds = SecondsBetween(reduced, SteadyClock::now())};
}

absl::Status LoneWorker::Commit() {
  if (!steps_->finite()) {
    return absl::DataLossError(fmt::format("the loss of step {} is {}: nothing can be measured",
                                           replica_.step() + 1, steps_->mean_loss()));
  }
  return steps_->Commit(false);
}

}  // namespace ringmaster::train

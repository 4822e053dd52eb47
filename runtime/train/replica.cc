#include "runtime/train/replica.h"

#include <algorithm>
#include <utility>

#include "common/sha256.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_stream.h"
#include "runtime/nn/initialise.h"
#include "runtime/nn/running_statistics.h"
#include "runtime/optim/schedule.h"

namespace ringmaster::train {
namespace {

data::SampleLedger NewLedger(const Workload& workload) {
  return {workload.data_fingerprint(), workload.seed(), workload.train().size()};
}

double LearningRate(const Workload& workload, uint64_t step) {
  const training::v1alpha1::TrainerConfig& config = workload.config();
  const double base = optim::BaseLearningRate(config.optimizer);
  if (!config.schedule) return base;
  return base * optim::LearningRateFactor(*config.schedule, step, workload.run_length());
}

}  // namespace

Replica::Replica(const Workload& workload, std::unique_ptr<optim::Optimizer> optimizer)
    : workload_(&workload),
      optimizer_(std::move(optimizer)),
      weights_(workload.layout().parameter_floats),
      states_(workload.layout().state_floats),
      ledger_(NewLedger(workload)) {
  Reset();
}

absl::StatusOr<Replica> Replica::Create(const Workload& workload) {
  RM_ASSIGN_OR_RETURN(auto optimizer, optim::MakeOptimizer(workload.config().optimizer,
                                                           workload.layout().parameter_floats));
  return Replica(workload, std::move(optimizer));
}

void Replica::Reset() {
  nn::InitialiseParameters(workload_->layout(), workload_->seed(), weights_.span());
  nn::InitialiseStates(workload_->layout(), states_.span());
  for (const optim::StateBuffer& buffer : optimizer_->state()) {
    std::fill(buffer.values.begin(), buffer.values.end(), 0.0F);
  }
  ledger_ = NewLedger(*workload_);
  step_ = 0;
  loss_ = 0;
  accuracy_ = -1;
  skipped_steps_ = 0;
}

absl::Status Replica::Commit(const StepSums& sums, std::span<const uint32_t> rows, bool skip) {
  RM_RETURN_IF_ERROR(ledger_.Append(data::FirstPosition(step_, workload_->batch()), rows));
  if (skip) {
    ++skipped_steps_;
  } else {
    optimizer_->Update(weights_.span(), sums.gradients,
                       {.step = step_,
                        .learning_rate = LearningRate(*workload_, step_),
                        .gradient_scale = 1.0 / workload_->labels_per_batch()});
    nn::FoldStatistics(workload_->layout(), sums.statistics, sums.statistics_samples,
                       states_.span());
    loss_ = sums.mean_loss;
  }
  ++step_;
  return absl::OkStatus();
}

std::string Replica::WeightsDigest() {
  std::vector<checkpoint::TensorView> tensors = Tensors();
  tensors.resize(workload_->layout().parameters.size() + workload_->layout().states.size());
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  Sha256 hash;
  for (const checkpoint::TensorView& tensor : tensors) {
    hash.Update(tensor.name + '\0');
    hash.Update(tensor.data);
  }
  return Hex(hash.Finish());
}

}  // namespace ringmaster::train

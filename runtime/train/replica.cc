#include "runtime/train/replica.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/sha256.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_stream.h"
#include "runtime/nn/initialise.h"
#include "runtime/nn/running_statistics.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/custom.h"

namespace ringmaster::train {
namespace {

data::SampleLedger NewLedger(const Workload& workload) {
  return {workload.data_fingerprint(), workload.seed(), workload.train().size()};
}

// Schedules go by the step. Moments count what they have seen, which steps that were left out
// never showed them.
optim::UpdateOptions OptionsOf(const Workload& workload, uint64_t step, uint64_t skipped = 0) {
  const training::v1alpha1::TrainerConfig& config = workload.config();
  optim::UpdateOptions options{.step = step - skipped,
                               .learning_rate = optim::BaseLearningRate(config.optimizer),
                               .gradient_scale = 1.0 / workload.labels_per_batch()};
  if (!config.schedule) return options;
  const optim::RunLength run = workload.run_length();
  options.learning_rate = optim::LearningRateAt(*config.schedule, options.learning_rate, step, run);
  options.weight_decay_factor = optim::WeightDecayFactor(*config.schedule, step, run);
  return options;
}

// A collapse falls from the rate that it finds: from none, nothing is learnt to the end.
absl::Status CheckCollapse(const Workload& workload) {
  const training::v1alpha1::TrainerConfig& config = workload.config();
  if (!config.schedule || !config.schedule->collapse) return absl::OkStatus();
  const uint64_t begin = optim::CollapseBegin(*config.schedule, workload.run_length());
  if (begin >= workload.total_steps() || OptionsOf(workload, begin).learning_rate > 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("spec.trainer.schedule.collapse begins at step {} of {} with a rate of 0, so "
                  "that nothing would be learnt from there; make it shorter or train longer",
                  begin, workload.total_steps()));
}

std::vector<optim::ParameterRange> RangesOf(const nn::Model& layout) {
  std::vector<optim::ParameterRange> ranges;
  for (const nn::Parameter& parameter : layout.parameters) {
    ranges.push_back({.name = parameter.name,
                      .offset = parameter.offset,
                      .size = static_cast<size_t>(parameter.shape.elements())});
  }
  return ranges;
}

}  // namespace

Replica::Replica(const Workload& workload, std::unique_ptr<optim::Optimizer> optimizer)
    : workload_(&workload),
      optimizer_(std::move(optimizer)),
      weights_(workload.layout().parameter_floats),
      states_(workload.layout().state_floats),
      ledger_(NewLedger(workload)),
      improvement_(workload.config().evaluation) {
  Reset();
}

absl::StatusOr<Replica> Replica::Create(const Workload& workload) {
  RM_RETURN_IF_ERROR(CheckCollapse(workload));
  const size_t size = workload.layout().parameter_floats;
  const std::vector<optim::ParameterRange> ranges = RangesOf(workload.layout());
  const training::v1alpha1::Optimizer& config = workload.config().optimizer;
  const auto custom = [&](std::vector<optim::Segment> segments) {
    return MakeCustom(workload.parts(), *config.custom,
                      {.size = size,
                       .weight_decay = config.custom->weight_decay,
                       .parameters = ranges,
                       .segments = std::move(segments)});
  };
  RM_ASSIGN_OR_RETURN(auto optimizer, optim::MakeOptimizer(config, size, ranges, custom));
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
  evaluation_.reset();
  ForgetImprovement();
  skipped_steps_ = 0;
}

void Replica::ForgetImprovement() {
  improvement_ = Improvement(workload_->config().evaluation);
}

absl::Status Replica::Commit(const StepSums& sums, std::span<const uint32_t> rows, bool skip) {
  RM_RETURN_IF_ERROR(ledger_.Append(data::FirstPosition(step_, workload_->batch()), rows));
  if (skip) {
    ++skipped_steps_;
  } else {
    optim::UpdateOptions options = OptionsOf(*workload_, step_, skipped_steps_);
    options.sum_of_squares = sums.sum_of_squares;
    optimizer_->Update(weights_.span(), sums.gradients, options);
    nn::FoldStatistics(workload_->layout(), sums.statistics, sums.statistics_samples,
                       states_.span());
    loss_ = sums.mean_loss;
  }
  ++step_;
  return absl::OkStatus();
}

void Replica::Evaluated(const Evaluation& evaluation) {
  evaluation_ = evaluation;
  improvement_.Add(evaluation);
}

std::optional<double> Replica::metric_value() const {
  if (!evaluation_ || std::cmp_not_equal(evaluation_->step, step_)) return std::nullopt;
  return ValueOf(training::v1alpha1::MetricOf(workload_->config().evaluation), *evaluation_);
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

#include "runtime/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_check.h"
#include "runtime/device/available_memory.h"
#include "runtime/nn/model.h"
#include "runtime/optim/clip.h"
#include "runtime/tensor/finite.h"
#include "runtime/train/bucket_sum.h"

namespace ringmaster::train {
namespace {

void SetFlags(const StepFlags& flags, const StepVector<float>& contribution) {
  contribution[Scalar::kDrain] = flags.drain ? 1.0F : 0.0F;
  contribution[Scalar::kPart] = flags.part ? 1.0F : 0.0F;
  contribution[Scalar::kCheckpoint] = flags.checkpoint ? 1.0F : 0.0F;
}

std::string NumbersOf(std::span<const uint32_t> samples) {
  constexpr size_t kMost = 8;
  const auto named = samples.first(std::min(samples.size(), kMost));
  return fmt::format("{}{}", fmt::join(named, ", "), named.size() < samples.size() ? ", ..." : "");
}

std::string Explain(const graph::NonFinite& found, std::span<const uint32_t> samples) {
  if (found.op.empty() && found.name == nn::kInputs) {
    return fmt::format("the data has such numbers itself, among samples {}", NumbersOf(samples));
  }
  if (found.op.empty()) return fmt::format("{} had such numbers before the step", found.name);
  return fmt::format("the first came out of {} ({}, {}) with samples {} of the data", found.name,
                     found.op, found.spec.ToString(), NumbersOf(samples));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const StepContext& context, int shards, collectives::Communicator& communicator) {
  const bool alone =
      communicator.world() == 1 && shards <= 1 && !NamesMethod(context.workload.config().gradients);
  std::unique_ptr<StepRunner> runner(
      new StepRunner(context, shards == 0 ? communicator.world() : shards, communicator, alone));
  RM_ASSIGN_OR_RETURN(runner->sum_,
                      GradientSum::Create({.shards = shards,
                                           .batch = context.workload.batch(),
                                           .layout = &context.workload.layout(),
                                           .config = &context.workload.config().gradients,
                                           .arrival_order = context.debug.arrival_order,
                                           .timeline = context.timeline},
                                          communicator, runner->total_.span()));
  const collectives::ShardRange owned = runner->sum_->owned();
  const auto memory = [] { return device::AvailableMemory(); };
  if (shards == 0) {
    RM_RETURN_IF_ERROR(
        context.shards.PrepareShare(runner->sum_->RowsOf(owned.begin).size(), memory));
  } else if (context.workload.synchronises()) {
    RM_RETURN_IF_ERROR(context.shards.PrepareTogether(owned.end - owned.begin, memory));
  }
  return runner;
}

StepRunner::StepRunner(const StepContext& context, int parts,
                       collectives::Communicator& communicator, bool alone)
    : context_(context),
      parts_(parts),
      communicator_(communicator),
      alone_(alone),
      stream_(context.workload.seed(), context.workload.train().size()),
      samples_(static_cast<size_t>(context.workload.batch())),
      positions_(samples_.size()),
      total_(alone ? 0 : StepVector<float>::Size(context.workload.layout())),
      sums_(total_.span()),
      own_statistics_(context.workload.layout().state_floats) {}

absl::Status StepRunner::Compute(const std::function<StepFlags()>& wanted) {
  const collectives::Phase phase("compute");
  const uint64_t first = data::FirstPosition(context_.replica.step(), context_.workload.batch());
  stream_.Read(first, samples_);
  std::iota(positions_.begin(), positions_.end(), first);
  std::fill(own_statistics_.span().begin(), own_statistics_.span().end(), 0.0F);
  own_samples_ = 0;
  sum_of_squares_.reset();
  const collectives::ShardRange owned = sum_->owned();
  if (context_.debug.local_streams) {
    const auto first_row = static_cast<uint64_t>(sum_->RowsOf(owned.begin).begin);
    for (uint64_t& position : positions_) position -= first_row;
  }
  if (context_.workload.synchronises()) return ComputeTogether(wanted);
  for (int shard = owned.begin; shard < owned.end; ++shard)
    RM_RETURN_IF_ERROR(ComputeShard(shard, wanted));
  return absl::OkStatus();
}

// Gradients are summed behind the last sum that shards wait for, or ranks would ask the
// communicator for the two in different orders.
absl::Status StepRunner::ComputeTogether(const std::function<StepFlags()>& wanted) {
  const collectives::OperationStats before = TotalOf(communicator_);
  const collectives::ShardRange owned = sum_->owned();
  rows_.clear();
  for (int shard = owned.begin; shard < owned.end; ++shard) rows_.push_back(sum_->RowsOf(shard));
  RM_ASSIGN_OR_RETURN(const std::span<const StepVector<float>> contributions,
                      context_.shards.RunTogether(rows_, samples_, positions_, [this](auto... sum) {
                        return SumOverShards(sum...);
                      }));
  const collectives::OperationStats after = TotalOf(communicator_);
  synchronised_.bytes_sent = after.bytes_sent - before.bytes_sent;
  synchronised_.bytes_received = after.bytes_received - before.bytes_received;
  for (int shard = owned.begin; shard < owned.end; ++shard)
    RM_RETURN_IF_ERROR(
        Take(shard, contributions[static_cast<size_t>(shard - owned.begin)], wanted));
  return absl::OkStatus();
}

absl::Status StepRunner::SumOverShards(size_t point, std::string_view name,
                                       std::span<const std::span<const double>> own,
                                       std::span<double> total) {
  const collectives::Phase phase("synchronise");
  if (point == over_shards_.size()) over_shards_.emplace_back(parts_, total.size());
  collectives::OrderedSum<double>& sum = over_shards_[point];
  const int first = sum_->owned().begin;
  absl::Status added;
  for (size_t i = 0; i < own.size() && added.ok(); ++i)
    added = sum.Add(first + static_cast<int>(i), own[i]);
  if (added.ok()) {
    added = sum.Reduce(communicator_, total, name);
    sums_failed_ = !added.ok();
  }
  sum.Clear();
  return added;
}

absl::Status StepRunner::ComputeShard(int shard, const std::function<StepFlags()>& wanted) {
  const data::RowRange rows = sum_->RowsOf(shard);
  absl::Status added;
  const auto add = [&](std::span<const float> contribution, size_t from) {
    if (added.ok()) added = sum_->AddGradients(shard, contribution, from);
  };
  const GradientsReady early(add);
  const bool is_last = shard + 1 == sum_->owned().end;
  const auto run = [&] {
    const collectives::Phase phase("forward and backward");
    return context_.shards.Run(rows, samples_, positions_, is_last && !alone_ ? &early : nullptr);
  };
  RM_ASSIGN_OR_RETURN(const StepVector<float> contribution, run());
  RM_RETURN_IF_ERROR(added);
  return Take(shard, contribution, wanted);
}

absl::Status StepRunner::Take(int shard, const StepVector<float>& contribution,
                              const std::function<StepFlags()>& wanted) {
  // A rank's flags travel once, with its first shard.
  if (shard == sum_->owned().begin && wanted) SetFlags(wanted(), contribution);
  if (alone_) {
    sums_ = contribution.all();
  } else {
    RM_RETURN_IF_ERROR(sum_->Add(shard, contribution.all()));
  }
  own_samples_ += sum_->RowsOf(shard).size();
  if (!context_.debug.local_statistics) return absl::OkStatus();
  std::transform(contribution.statistics().begin(), contribution.statistics().end(),
                 own_statistics_.span().begin(), own_statistics_.span().begin(),
                 std::plus<float>());
  return absl::OkStatus();
}

absl::StatusOr<ReductionTraffic> StepRunner::Reduce() {
  const collectives::Phase phase("wait for gradients");
  if (alone_) {
    RM_RETURN_IF_ERROR(communicator_.status());
    return ReductionTraffic{};
  }
  RM_ASSIGN_OR_RETURN(ReductionTraffic traffic, sum_->Reduce());
  traffic.sent += synchronised_.bytes_sent;
  traffic.received += synchronised_.bytes_received;
  return traffic;
}

StepFlags StepRunner::flags() const {
  return {.drain = sums()[Scalar::kDrain] > 0,
          .part = sums()[Scalar::kPart] > 0,
          .checkpoint = sums()[Scalar::kCheckpoint] > 0};
}

double StepRunner::mean_loss() const {
  return sums()[Scalar::kLoss] / context_.workload.labels_per_batch();
}

bool StepRunner::finite() {
  return std::isfinite(mean_loss()) && GradientsAreFinite() &&
         tensor::AllFinite(sums().statistics());
}

// One pass, also where the norm is needed next.
bool StepRunner::GradientsAreFinite() {
  const auto& clip = context_.workload.config().optimizer.clip;
  if (!clip || !clip->global_norm) return tensor::AllFinite(sums().gradients());
  sum_of_squares_ = optim::SumOfSquares(sums().gradients());
  return std::isfinite(*sum_of_squares_);
}

std::span<const uint32_t> StepRunner::SamplesOf(int shard) const {
  const data::RowRange rows = sum_->RowsOf(shard);
  return std::span(samples_).subspan(static_cast<size_t>(rows.begin),
                                     static_cast<size_t>(rows.size()));
}

// The losses make no number of a label that is no class, so labels are the first to be looked at.
absl::StatusOr<std::optional<std::string>> StepRunner::ExplainNonFinite() {
  const collectives::Phase phase("look for what is not finite");
  const collectives::ShardRange owned = sum_->owned();
  for (int shard = owned.begin; shard < owned.end; ++shard) {
    const absl::Status labels = data::CheckLabels(context_.workload.train(), SamplesOf(shard));
    if (!labels.ok()) return fmt::format("the data is wrong in {}", Message(labels));
  }
  for (int shard = owned.begin; shard < owned.end; ++shard) {
    RM_ASSIGN_OR_RETURN(const auto found,
                        context_.shards.FindNonFinite(shard - owned.begin, sum_->RowsOf(shard),
                                                      samples_, positions_));
    if (found) return Explain(*found, SamplesOf(shard));
  }
  return std::nullopt;
}

absl::Status StepRunner::Commit(bool skip) {
  const collectives::Phase phase("commit");
  StepSums step_sums{.gradients = sums().gradients(),
                     .statistics = sums().statistics(),
                     .statistics_samples = context_.workload.batch(),
                     .mean_loss = mean_loss(),
                     .sum_of_squares = sum_of_squares_};
  if (context_.debug.local_statistics) {
    step_sums.statistics = own_statistics_.span();
    step_sums.statistics_samples = own_samples_;
  }
  RM_RETURN_IF_ERROR(context_.replica.Commit(step_sums, samples_, skip));
  if (!skip) sum_->Commit();
  return absl::OkStatus();
}

}  // namespace ringmaster::train

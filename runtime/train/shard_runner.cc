#include "runtime/train/shard_runner.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::train {

ShardRunner::ShardRunner(const Workload& workload, kernels::Selection kernels,
                         std::span<float> weights)
    : workload_(workload), kernels_(kernels), weights_(weights), bytes_(workload.shard_bytes()) {
  MakePrograms(1);
}

void ShardRunner::MakePrograms(int count) {
  const graph::CompileOptions options = workload_.StepOptions(kernels_, count);
  for (int i = 0; i < count; ++i)
    programs_.push_back(std::make_unique<ShardProgram>(workload_, options, weights_));
}

absl::StatusOr<StepVector<float>> ShardRunner::Run(data::RowRange range,
                                                   std::span<const uint32_t> samples,
                                                   std::span<const uint64_t> positions,
                                                   const GradientsReady* ready) {
  return programs_.front()->Run({range, samples, positions}, ready);
}

absl::Status ShardRunner::PrepareTogether(
    int shards, const std::function<std::optional<int64_t>()>& available_memory) {
  programs_.clear();
  const absl::StatusOr<size_t> fits = workload_.CheckTogether(kernels_, shards, available_memory());
  MakePrograms(fits.ok() ? shards : 1);
  if (fits.ok()) bytes_ = *fits;
  return fits.status();
}

absl::Status ShardRunner::PrepareShare(
    int64_t samples, const std::function<std::optional<int64_t>()>& available_memory) {
  if (samples == share_) return absl::OkStatus();
  programs_.clear();
  const absl::StatusOr<size_t> fits = workload_.CheckShare(kernels_, samples, available_memory());
  MakePrograms(1);
  share_ = fits.ok() ? samples : 0;
  if (fits.ok()) bytes_ = *fits;
  return fits.status();
}

absl::StatusOr<bool> ShardRunner::AdvanceAll() {
  sums_.clear();
  own_.clear();
  for (const auto& program : programs_) {
    const std::optional<graph::ShardSum> sum = program->Advance();
    if (!sum) continue;
    sums_.push_back(*sum);
    own_.push_back(sum->own);
  }
  const auto is_like_first = [&](const graph::ShardSum& sum) {
    return sum.name == sums_[0].name && sum.own.size() == sums_[0].own.size();
  };
  if (sums_.empty()) return false;
  if (sums_.size() == programs_.size() && std::ranges::all_of(sums_, is_like_first)) return true;
  return absl::InternalError(
      fmt::format("shards of one step wait for different sums at {}", sums_[0].name));
}

absl::StatusOr<std::span<const StepVector<float>>> ShardRunner::RunTogether(
    std::span<const data::RowRange> ranges, std::span<const uint32_t> samples,
    std::span<const uint64_t> positions, AddOverShards add) {
  if (ranges.size() != programs_.size()) {
    return absl::InternalError(fmt::format("{} shards are to be computed together, {} are prepared",
                                           ranges.size(), programs_.size()));
  }
  for (size_t i = 0; i < ranges.size(); ++i)
    RM_RETURN_IF_ERROR(programs_[i]->Start({ranges[i], samples, positions}));
  for (size_t point = 0;; ++point) {
    RM_ASSIGN_OR_RETURN(const bool waits, AdvanceAll());
    if (!waits) break;
    RM_RETURN_IF_ERROR(add(point, sums_[0].name, own_, sums_[0].total));
    for (size_t i = 1; i < sums_.size(); ++i)
      std::ranges::copy(sums_[0].total, sums_[i].total.begin());
  }
  contributions_.clear();
  for (const auto& program : programs_) {
    RM_ASSIGN_OR_RETURN(const StepVector<float> contribution, program->Finish());
    contributions_.push_back(contribution);
  }
  return std::span<const StepVector<float>>(contributions_);
}

absl::StatusOr<std::optional<graph::NonFinite>> ShardRunner::FindNonFinite(
    int place, data::RowRange range, std::span<const uint32_t> samples,
    std::span<const uint64_t> positions) {
  const size_t program = programs_.size() == 1 ? 0 : static_cast<size_t>(place);
  return programs_[program]->FindNonFinite({range, samples, positions});
}

void ShardRunner::SetProfile(graph::Profile* profile) {
  for (const auto& program : programs_) program->SetProfile(profile);
}

}  // namespace ringmaster::train

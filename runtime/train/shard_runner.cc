#include "runtime/train/shard_runner.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "runtime/nn/binding.h"
#include "runtime/nn/running_statistics.h"

namespace ringmaster::train {

ShardRunner::ShardRunner(const Workload& workload, kernels::Selection kernels,
                         std::span<float> weights)
    : workload_(workload),
      kernels_(kernels),
      weights_(weights),
      contribution_(StepVector<float>::Size(workload.layout())) {}

absl::StatusOr<ShardRunner::Prepared*> ShardRunner::PreparedFor(int64_t samples) {
  if (const auto found = prepared_.find(samples); found != prepared_.end()) return &found->second;
  RM_ASSIGN_OR_RETURN(const nn::Model model, workload_.Build(nn::Mode::kTraining, samples));
  Prepared made;
  RM_ASSIGN_OR_RETURN(made.executor,
                      graph::Executor::Compile(model.graph, workload_.StepOptions(kernels_)));
  made.inputs = tensor::Tensor(model.inputs.shape, model.inputs.dtype);
  made.labels = tensor::Tensor(model.labels.shape, model.labels.dtype);
  graph::Executor& executor = *made.executor;
  const StepVector<float> out(workload_.layout(), contribution_.span());
  RM_RETURN_IF_ERROR(executor.Bind(nn::kInputs, made.inputs));
  RM_RETURN_IF_ERROR(executor.Bind(nn::kLabels, made.labels));
  RM_RETURN_IF_ERROR(nn::BindParameters(model, weights_, executor));
  RM_RETURN_IF_ERROR(executor.BindBlock(std::as_writable_bytes(out.gradients())));
  RM_RETURN_IF_ERROR(nn::BindStatistics(model, out.statistics(), executor));
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    RM_RETURN_IF_ERROR(
        executor.OnComplete(model.parameters[i].gradient, [this, i] { Complete(i); }));
  }
  return &prepared_.emplace(samples, std::move(made)).first->second;
}

// Backward goes from the last parameter to the first, not always strictly. Behind a gradient, up to
// the next, other values have been.
void ShardRunner::Complete(size_t parameter) {
  const std::vector<nn::Parameter>& all = workload_.layout().parameters;
  const size_t end = all[parameter].offset + static_cast<size_t>(all[parameter].shape.elements());
  const size_t next =
      parameter + 1 < all.size() ? all[parameter + 1].offset : workload_.layout().parameter_floats;
  std::fill_n(contribution_.span().data() + end, next - end, 0.0F);
  if (*ready_ == nullptr) return;
  complete_[parameter] = true;
  const size_t before = complete_from_;
  while (complete_from_ > 0 && complete_[complete_from_ - 1]) --complete_from_;
  if (complete_from_ == before) return;
  (*ready_)(contribution_.span(), all[complete_from_].offset);
}

absl::StatusOr<ShardRunner::Prepared*> ShardRunner::FilledWith(std::span<const uint32_t> samples) {
  RM_ASSIGN_OR_RETURN(Prepared * prepared, PreparedFor(static_cast<int64_t>(samples.size())));
  RM_RETURN_IF_ERROR(workload_.train().Fill(samples, prepared->inputs, prepared->labels));
  return prepared;
}

absl::StatusOr<std::optional<graph::NonFinite>> ShardRunner::FindNonFinite(
    data::RowRange range, std::span<const uint32_t> samples, std::span<const uint64_t> positions) {
  const auto begin = static_cast<size_t>(range.begin);
  const auto count = static_cast<size_t>(range.size());
  RM_ASSIGN_OR_RETURN(Prepared * prepared, FilledWith(samples.subspan(begin, count)));
  return prepared->executor->FindNonFinite(
      {.seed = workload_.seed(), .sample_positions = positions.subspan(begin, count)});
}

absl::StatusOr<StepVector<float>> ShardRunner::Run(data::RowRange range,
                                                   std::span<const uint32_t> samples,
                                                   std::span<const uint64_t> positions,
                                                   const GradientsReady& ready) {
  const auto begin = static_cast<size_t>(range.begin);
  const auto count = static_cast<size_t>(range.size());
  RM_ASSIGN_OR_RETURN(Prepared * prepared, FilledWith(samples.subspan(begin, count)));
  ready_ = &ready;
  complete_from_ = workload_.layout().parameters.size();
  complete_.assign(complete_from_, false);
  RM_RETURN_IF_ERROR(prepared->executor->Run(
      {.seed = workload_.seed(), .sample_positions = positions.subspan(begin, count)}));
  const StepVector<float> out(workload_.layout(), contribution_.span());
  nn::WeighStatistics(range.size(), out.statistics());
  RM_ASSIGN_OR_RETURN(const tensor::Tensor loss, prepared->executor->Output(nn::kLossSum));
  out[Scalar::kLoss] = loss.data<float>()[0];
  out[Scalar::kDrain] = 0;
  out[Scalar::kPart] = 0;
  out[Scalar::kCheckpoint] = 0;
  return out;
}

void ShardRunner::SetProfile(int64_t samples, graph::Profile* profile) {
  prepared_.at(samples).executor->SetProfile(profile);
}

}  // namespace ringmaster::train

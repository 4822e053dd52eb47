#include "runtime/train/shard_program.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "runtime/nn/binding.h"
#include "runtime/nn/running_statistics.h"

namespace ringmaster::train {
namespace {

constexpr size_t kSizes = 2;

graph::CompileOptions InOneArena(graph::CompileOptions options) {
  options.arena = std::make_shared<device::Buffer>();
  return options;
}

std::span<const uint32_t> SamplesOf(const BatchPart& part) {
  return part.samples.subspan(static_cast<size_t>(part.range.begin),
                              static_cast<size_t>(part.range.size()));
}

std::span<const uint64_t> PositionsOf(const BatchPart& part) {
  return part.positions.subspan(static_cast<size_t>(part.range.begin),
                                static_cast<size_t>(part.range.size()));
}

}  // namespace

ShardProgram::ShardProgram(const Workload& workload, graph::CompileOptions options,
                           std::span<float> weights)
    : workload_(workload),
      options_(InOneArena(std::move(options))),
      weights_(weights),
      contribution_(StepVector<float>::Size(workload.layout())) {}

absl::StatusOr<ShardProgram::Prepared*> ShardProgram::PreparedFor(int64_t samples) {
  auto found = prepared_.find(samples);
  if (found == prepared_.end()) {
    const auto last_use = [](const auto& entry) { return entry.second.last_use; };
    if (prepared_.size() == kSizes)
      prepared_.erase(std::ranges::min_element(prepared_, {}, last_use));
    RM_ASSIGN_OR_RETURN(Prepared made, Prepare(samples));
    found = prepared_.emplace(samples, std::move(made)).first;
  }
  found->second.last_use = ++uses_;
  return &found->second;
}

absl::StatusOr<ShardProgram::Prepared> ShardProgram::Prepare(int64_t samples) {
  RM_ASSIGN_OR_RETURN(const nn::Model model, workload_.Build(nn::Mode::kTraining, samples));
  Prepared made;
  RM_ASSIGN_OR_RETURN(made.executor, graph::Executor::Compile(model.graph, options_));
  made.inputs = tensor::Tensor(model.inputs.shape, model.inputs.dtype);
  made.labels = tensor::Tensor(model.labels.shape, model.labels.dtype);
  made.loss_sum = tensor::Tensor({}, tensor::DType::kF32);
  graph::Executor& executor = *made.executor;
  const StepVector<float> out(workload_.layout(), contribution_.span());
  RM_RETURN_IF_ERROR(executor.Bind(nn::kInputs, made.inputs));
  RM_RETURN_IF_ERROR(executor.Bind(nn::kLabels, made.labels));
  RM_RETURN_IF_ERROR(executor.BindOutput(nn::kLossSum, made.loss_sum));
  RM_RETURN_IF_ERROR(nn::BindParameters(model, weights_, executor));
  RM_RETURN_IF_ERROR(executor.BindBlock(std::as_writable_bytes(out.gradients())));
  RM_RETURN_IF_ERROR(nn::BindStatistics(model, out.statistics(), executor));
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    RM_RETURN_IF_ERROR(
        executor.OnComplete(model.parameters[i].gradient, [this, i] { Complete(i); }));
  }
  return made;
}

// Backward goes from the last parameter to the first, not always strictly. Behind a gradient, up to
// the next, other values have been.
void ShardProgram::Complete(size_t parameter) {
  const std::vector<nn::Parameter>& all = workload_.layout().parameters;
  const size_t end = all[parameter].offset + static_cast<size_t>(all[parameter].shape.elements());
  const size_t next =
      parameter + 1 < all.size() ? all[parameter + 1].offset : workload_.layout().parameter_floats;
  std::fill_n(contribution_.span().data() + end, next - end, 0.0F);
  if (ready_ == nullptr) return;
  complete_[parameter] = true;
  const size_t before = complete_from_;
  while (complete_from_ > 0 && complete_[complete_from_ - 1]) --complete_from_;
  if (complete_from_ == before) return;
  (*ready_)(contribution_.span(), all[complete_from_].offset);
}

absl::StatusOr<ShardProgram::Prepared*> ShardProgram::FilledWith(const BatchPart& part) {
  RM_ASSIGN_OR_RETURN(Prepared * prepared, PreparedFor(part.range.size()));
  RM_RETURN_IF_ERROR(workload_.train().FillForTraining(SamplesOf(part), PositionsOf(part),
                                                       prepared->inputs, prepared->labels));
  return prepared;
}

graph::RunContext ShardProgram::ContextOf(const BatchPart& part) const {
  return {.seed = workload_.seed(), .sample_positions = PositionsOf(part)};
}

void ShardProgram::ListenFor(const GradientsReady* ready) {
  ready_ = ready;
  complete_from_ = workload_.layout().parameters.size();
  complete_.assign(complete_from_, false);
}

absl::StatusOr<std::optional<graph::NonFinite>> ShardProgram::FindNonFinite(const BatchPart& part) {
  RM_ASSIGN_OR_RETURN(Prepared * prepared, FilledWith(part));
  return prepared->executor->FindNonFinite(ContextOf(part));
}

absl::StatusOr<StepVector<float>> ShardProgram::Run(const BatchPart& part,
                                                    const GradientsReady* ready) {
  RM_ASSIGN_OR_RETURN(running_, FilledWith(part));
  samples_ = part.range.size();
  ListenFor(ready);
  RM_RETURN_IF_ERROR(running_->executor->Run(ContextOf(part)));
  return Finish();
}

absl::Status ShardProgram::Start(const BatchPart& part) {
  RM_ASSIGN_OR_RETURN(running_, FilledWith(part));
  samples_ = part.range.size();
  ListenFor(nullptr);
  return running_->executor->Start(ContextOf(part));
}

std::optional<graph::ShardSum> ShardProgram::Advance() {
  return running_->executor->Advance();
}

absl::StatusOr<StepVector<float>> ShardProgram::Finish() {
  const StepVector<float> out(workload_.layout(), contribution_.span());
  nn::WeighStatistics(samples_, out.statistics());
  out[Scalar::kLoss] = running_->loss_sum.data<float>()[0];
  out[Scalar::kDrain] = 0;
  out[Scalar::kPart] = 0;
  out[Scalar::kCheckpoint] = 0;
  return out;
}

void ShardProgram::SetProfile(graph::Profile* profile) {
  for (auto& [samples, prepared] : prepared_) prepared.executor->SetProfile(profile);
}

}  // namespace ringmaster::train

#include "runtime/train/workload.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/sha256.h"
#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "proto/schema/defaults.h"
#include "runtime/data/image_dataset.h"
#include "runtime/data/sample_stream.h"
#include "runtime/device/threads.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/requirements.h"
#include "runtime/kernels/library_version.h"
#include "runtime/nn/binding.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/bucket_sum.h"
#include "runtime/train/custom.h"
#include "runtime/train/evaluation.h"

namespace ringmaster::train {
namespace {

// Where there are none, a worker's share of the batch is smaller the more workers there are.
bool HasShards(const training::v1alpha1::TrainerConfig& config) {
  return config.batch.shards.value_or(0) > 0;
}

// Samples of the largest shard that a worker computes at once. Without a number of shards it
// depends on the workers; the network is then tried with a few.
int64_t LargestShard(const training::v1alpha1::TrainerConfig& config) {
  constexpr int64_t kTrialBatch = 8;
  const int64_t batch = config.batch.size, shards = config.batch.shards.value_or(0);
  return shards > 0 ? (batch + shards - 1) / shards : std::min(kTrialBatch, batch);
}

// How many times what the parameters take a worker keeps, at least, beside the optimizer's state:
// the weights and a shard's gradients, and, unless it may be alone with all of the batch, what is
// summed: its own shards so far (by some methods in less), and all workers'.
size_t CopiesOfParameters(const training::v1alpha1::TrainerConfig& config) {
  const bool names_method = NamesMethod(config.gradients);
  if (config.batch.shards.value_or(0) <= 1 && !names_method) return 2;
  return names_method ? 3 : 4;
}

// So many samples that none of the network's results takes more than this, or one. Not by what the
// plan takes: that is a matter of the kernels, which differ from machine to machine.
int64_t EvaluatedAtOnce(const graph::Graph& of_one_sample) {
  constexpr size_t kLargestValue = size_t{64} << 20;
  size_t largest = 1;
  for (const graph::Value& value : of_one_sample.values()) {
    if (value.producer >= 0) largest = std::max(largest, value.spec.bytes());
  }
  int64_t samples = kEvaluationBlock;
  while (samples > 1 && largest > kLargestValue / static_cast<size_t>(samples)) samples /= 2;
  return samples;
}

nn::Loss LossOf(const training::v1alpha1::TrainerConfig& config) {
  using training::v1alpha1::LossFunction;
  switch (config.loss.value_or(LossFunction::kCrossEntropy)) {
    case LossFunction::kMeanSquare:
      return nn::Loss::kMeanSquare;
    case LossFunction::kNegativeLogLikelihood:
      return nn::Loss::kNegativeLogLikelihood;
    case LossFunction::kUnspecified:
    case LossFunction::kCrossEntropy:
      break;
  }
  return nn::Loss::kCrossEntropy;
}

// A collapse may see images whole.
data::ImageRun ImageRunOf(const training::v1alpha1::TrainerConfig& config,
                          const optim::RunLength& length) {
  data::ImageRun run{.seed = static_cast<uint64_t>(config.seed)};
  const auto& schedule = config.schedule;
  if (schedule && schedule->collapse && schedule->collapse->whole_images)
    run.whole_from =
        data::FirstPosition(optim::CollapseBegin(*schedule, length), config.batch.size);
  return run;
}

bool HasSumsOverShards(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const graph::Node& node) { return node.op->over_shards; });
}

// What memory is for.
std::string ShardsAtOnce(int together, int64_t samples) {
  if (together == 1) return fmt::format("a shard of {}", WithNoun(samples, "sample"));
  return fmt::format(
      "each of {} shards of {}, which synchronised batch norm has this worker compute at once",
      together, WithNoun(samples, "sample"));
}

}  // namespace

optim::RunLength RunLengthOf(const training::v1alpha1::TrainerConfig& config, uint32_t samples) {
  const int64_t batch = config.batch.size;
  return {.total_steps = config.steps
                             ? static_cast<uint64_t>(*config.steps)
                             : data::StepsForEpochs(config.epochs.value_or(1), samples, batch),
          .samples = samples,
          .batch = static_cast<uint64_t>(batch)};
}

Workload::Workload(const training::v1alpha1::TrainerConfig& config, data::Splits splits,
                   Parts parts)
    : config_(&config),
      splits_(std::move(splits)),
      parts_(std::move(parts)),
      run_length_(RunLengthOf(config, train().size())) {}

absl::StatusOr<Workload> Workload::Load(const training::v1alpha1::TrainerConfig& config,
                                        const std::string& workspace, Parts parts) {
  absl::StatusOr<data::Splits> splits = config.data.custom
                                            ? LoadCustom(parts, *config.data.custom, workspace)
                                            : data::Load(config.data, workspace);
  if (!splits.ok()) return splits.status();
  if (config.data.images) {
    const optim::RunLength run = RunLengthOf(config, splits->train->size());
    RM_RETURN_IF_ERROR(data::ChangeImages(*config.data.images, ImageRunOf(config, run), *splits));
  }
  return Workload(config, *std::move(splits), std::move(parts));
}

absl::StatusOr<nn::Model> Workload::Build(nn::Mode mode, int64_t batch, bool gradients) const {
  const data::SampleFormat& format = train().format();
  const nn::BuildOptions options{.mode = mode,
                                 .batch = batch,
                                 .sample = format.input,
                                 .label_shape = format.label_shape,
                                 .classes = format.classes,
                                 .independent_labels = format.has_independent_labels(),
                                 .loss = LossOf(*config_),
                                 .label_smoothing = config_->label_smoothing,
                                 .gradients = gradients,
                                 .synchronised_batch_norm = synchronises()};
  if (config_->model.custom) return BuildCustom(parts_, *config_->model.custom, options);
  return nn::BuildModel(config_->model, options);
}

absl::Status Workload::CheckModel(kernels::Selection kernels,
                                  std::optional<device::MemoryRoom> memory,
                                  std::string_view advice) {
  if (train().format().has_independent_labels() && LossOf(*config_) != nn::Loss::kCrossEntropy) {
    return absl::InvalidArgumentError(
        "spec.trainer.loss: is of classes, and this data has independent labels; leave it out");
  }
  const int64_t batch = LargestShard(*config_);
  RM_ASSIGN_OR_RETURN(layout_, Build(nn::Mode::kTraining, batch));
  if (config_->model.custom) {
    RM_ASSIGN_OR_RETURN(const nn::Model other, Build(nn::Mode::kEvaluation, batch + 1));
    RM_RETURN_IF_ERROR(CheckSameLayout(layout_, other));
  }
  if (synchronises() && !HasSumsOverShards(layout_.graph)) {
    return absl::InvalidArgumentError(fmt::format(
        "spec.trainer.model.batchNorm: {} has no batch norm to synchronise; leave it out",
        layout_.name));
  }
  const absl::StatusOr<graph::Requirements> fits = StepRequirements(layout_, kernels, 1);
  if (absl::IsResourceExhausted(fits.status()) && HasShards(*config_))
    return absl::InvalidArgumentError(Message(fits.status()));
  RM_RETURN_IF_ERROR(fits.status());
  const graph::Requirements& step = *fits;
  RM_RETURN_IF_ERROR(PlanEvaluation(kernels));
  shard_bytes_ = sizeof(float) * layout_.parameter_floats + step.arena_bytes;
  if (memory) RM_RETURN_IF_ERROR(CheckMemory(step, *memory, advice));
  Sha256 hash;
  hash.Update(fmt::format("threads {}\n{}\n", device::ThreadCount(), kernels::LibraryVersion()));
  for (const std::string& name : step.implementation_names) {
    hash.Update(name);
    hash.Update("\n");
  }
  kernels_digest_ = Hex(hash.Finish());
  return absl::OkStatus();
}

absl::StatusOr<graph::Requirements> Workload::StepRequirements(const nn::Model& shard,
                                                               kernels::Selection kernels,
                                                               int together) const {
  auto step = graph::RequirementsOf(shard.graph, StepOptions(kernels, together));
  if (!absl::IsResourceExhausted(step.status())) return step;
  return absl::ResourceExhaustedError(
      fmt::format("spec.trainer.stepMemoryBytes: {}, for {}; allow more, or {}",
                  Message(step.status()), ShardsAtOnce(together, shard.inputs.shape.dim(0)),
                  together == 1 ? "cut the batch into more shards (batch.shards)"
                                : "give the job more workers"));
}

bool Workload::synchronises() const {
  return config_->model.batch_norm == training::v1alpha1::BatchNormOver::kSynchronised;
}

absl::Status Workload::PlanEvaluation(kernels::Selection kernels) {
  const int64_t samples = held_out().size();
  if (samples == 0) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(const nn::Model one, Build(nn::Mode::kEvaluation, 1));
  evaluated_at_once_ = EvaluatedAtOnce(one.graph);
  RM_ASSIGN_OR_RETURN(const nn::Model most,
                      Build(nn::Mode::kEvaluation, std::min(evaluated_at_once_, samples)));
  RM_ASSIGN_OR_RETURN(const graph::Requirements needs,
                      graph::RequirementsOf(most.graph, {.kernels = kernels}));
  evaluation_bytes_ = needs.arena_bytes + needs.output_bytes;
  return absl::OkStatus();
}

absl::StatusOr<size_t> Workload::CheckTogether(kernels::Selection kernels, int together,
                                               std::optional<int64_t> available_memory) const {
  return CheckShards(layout_, kernels, together, available_memory, "");
}

absl::StatusOr<size_t> Workload::CheckShare(kernels::Selection kernels, int64_t samples,
                                            std::optional<int64_t> available_memory) const {
  RM_ASSIGN_OR_RETURN(const nn::Model share, Build(nn::Mode::kTraining, samples));
  return CheckShards(share, kernels, 1, available_memory, "cut it into shards (batch.shards), ");
}

// Beside the weights and the sum, which have their places already, each shard has its gradients.
absl::StatusOr<size_t> Workload::CheckShards(const nn::Model& shard, kernels::Selection kernels,
                                             int together, std::optional<int64_t> available_memory,
                                             std::string_view advice) const {
  RM_ASSIGN_OR_RETURN(const graph::Requirements step, StepRequirements(shard, kernels, together));
  const size_t gradients = sizeof(float) * layout_.parameter_floats;
  const size_t of_shards = static_cast<size_t>(together) * (gradients + step.arena_bytes);
  const size_t least = of_shards + evaluation_bytes_;
  if (!available_memory || least <= static_cast<size_t>(*available_memory)) return of_shards;
  return absl::ResourceExhaustedError(fmt::format(
      "training needs {} more of memory, {} are available: {} for evaluation, {} for values and {} "
      "for gradients of {}; give the job more workers, make the batch smaller, {}or give the "
      "workers more memory",
      WithUnit(least), WithUnit(static_cast<size_t>(*available_memory)),
      WithUnit(evaluation_bytes_), WithUnit(step.arena_bytes), WithUnit(gradients),
      ShardsAtOnce(together, shard.inputs.shape.dim(0)), advice));
}

// Whose plan is made for less than others' computes more again, which changes no bit.
graph::CompileOptions Workload::StepOptions(kernels::Selection kernels, int together) const {
  const auto shards = static_cast<size_t>(together);
  graph::CompileOptions options{.kernels = kernels, .block = nn::GradientBlock(layout_)};
  if (config_->step_memory_bytes) {
    options.memory_budget =
        std::max<size_t>(1, static_cast<size_t>(*config_->step_memory_bytes) / shards);
  }
  options.recompute_from /= shards;
  return options;
}

size_t Workload::lasting_bytes() const {
  return sizeof(float) * (layout_.parameter_floats +
                          optim::FloatsFor(config_->optimizer, layout_.parameter_floats));
}

// Weights, gradients and their sums, what the optimizer keeps, what a step computes in between, and
// what an evaluation does; more may come from a custom optimizer.
absl::Status Workload::CheckMemory(const graph::Requirements& step, const device::MemoryRoom& room,
                                   std::string_view advice) const {
  const size_t parameters = CopiesOfParameters(*config_) * sizeof(float) * layout_.parameter_floats;
  const size_t optimizer =
      sizeof(float) * optim::FloatsFor(config_->optimizer, layout_.parameter_floats);
  const size_t least = parameters + optimizer + step.arena_bytes + evaluation_bytes_;
  if (least <= static_cast<size_t>(room.available)) return absl::OkStatus();
  // A worker with other kernels, which may need less, would be refused for them.
  const bool ever = least <= static_cast<size_t>(room.most) || !HasShards(*config_);
  std::string message = fmt::format(
      "the model needs at least {} of memory, {}: {} for weights and gradients of {} "
      "parameters, {} for what the optimizer keeps, {} for evaluating {} at once, {} for "
      "the values of a shard of {}, the largest of which is {}, {}; {}",
      WithUnit(least),
      ever ? fmt::format("{} are available", WithUnit(static_cast<size_t>(room.available)))
           : fmt::format("its container has a limit of {}",
                         WithUnit(static_cast<size_t>(room.most))),
      WithUnit(parameters), WithCommas(layout_.ParameterCount()), WithUnit(optimizer),
      WithUnit(evaluation_bytes_),
      WithNoun(std::min<int64_t>(evaluated_at_once_, held_out().size()), "sample"),
      WithUnit(step.arena_bytes), WithNoun(layout_.inputs.shape.dim(0), "sample"), step.largest,
      WithUnit(step.largest_bytes), advice);
  return ever ? absl::ResourceExhaustedError(message) : absl::InvalidArgumentError(message);
}

int64_t Workload::batch() const {
  return config_->batch.size;
}

uint64_t Workload::seed() const {
  return static_cast<uint64_t>(config_->seed);
}

double Workload::labels_per_batch() const {
  return static_cast<double>(batch()) * static_cast<double>(train().format().labels());
}

double Workload::EpochsAfter(uint64_t steps) const {
  return data::EpochsAfter(steps, train().size(), batch());
}

std::string Workload::Describe() const {
  return fmt::format("{}, {} parameters", layout_.name, WithCommas(layout_.ParameterCount()));
}

std::string Workload::Fingerprint() const {
  Sha256 hash;
  hash.Update(data_fingerprint() + "\n");
  // A worker of another version may know more fields, which all have their defaults here.
  nlohmann::json said = training::v1alpha1::ToJson(*config_);
  schema::DropDefaults(training::v1alpha1::SchemaOf<training::v1alpha1::TrainerConfig>(), said);
  hash.Update(said.dump());
  return Hex(hash.Finish());
}

}  // namespace ringmaster::train

#include "runtime/train/workload.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/sha256.h"
#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_stream.h"
#include "runtime/device/threads.h"
#include "runtime/graph/executor.h"

namespace ringmaster::train {
namespace {

// Samples that the network is tried with before the shards' sizes are known.
constexpr int64_t kTrialBatch = 8;

}  // namespace

Workload::Workload(const training::v1alpha1::TrainerConfig& config, data::Splits splits)
    : config_(&config), splits_(std::move(splits)) {
  total_steps_ = config.steps
                     ? static_cast<uint64_t>(*config.steps)
                     : data::StepsForEpochs(config.epochs.value_or(1), train().size(), batch());
}

absl::StatusOr<Workload> Workload::Load(const training::v1alpha1::TrainerConfig& config,
                                        const std::string& workspace) {
  RM_ASSIGN_OR_RETURN(data::Splits splits, data::Load(config.data, workspace));
  return Workload(config, std::move(splits));
}

absl::StatusOr<nn::Model> Workload::Build(nn::Mode mode, int64_t batch) const {
  const data::SampleFormat& format = train().format();
  return nn::BuildModel(config_->model, {.mode = mode,
                                         .batch = batch,
                                         .sample = format.input,
                                         .label_shape = format.label_shape,
                                         .classes = format.classes});
}

absl::Status Workload::CheckModel(kernels::Selection kernels) {
  RM_ASSIGN_OR_RETURN(layout_, Build(nn::Mode::kTraining, std::min(kTrialBatch, batch())));
  RM_ASSIGN_OR_RETURN(const auto executor,
                      graph::Executor::Compile(layout_.graph, {.kernels = kernels}));
  Sha256 hash;
  hash.Update(fmt::format("threads {}\n", device::ThreadCount()));
  for (const std::string& name : executor->ImplementationNames()) {
    hash.Update(name);
    hash.Update("\n");
  }
  kernels_digest_ = Hex(hash.Finish());
  return absl::OkStatus();
}

int64_t Workload::batch() const {
  return config_->batch.size;
}

uint64_t Workload::seed() const {
  return static_cast<uint64_t>(config_->seed);
}

optim::RunLength Workload::run_length() const {
  return {.total_steps = total_steps_,
          .samples = train().size(),
          .batch = static_cast<uint64_t>(batch())};
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
  hash.Update(training::v1alpha1::ToJson(*config_).dump());
  return Hex(hash.Finish());
}

}  // namespace ringmaster::train

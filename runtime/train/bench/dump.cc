#include "runtime/train/bench/dump.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/graph/op_definition.h"
#include "runtime/train/bench/double_steps.h"
#include "runtime/train/bench/tensor_file.h"
#include "runtime/train/bench/trial.h"

namespace ringmaster::train::bench {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr char kGradients[] = "gradients/";
constexpr char kLosses[] = "losses";

// The parameters' parts of a flat buffer, times `factor`.
void AddParameters(const nn::Model& layout, const std::string& prefix, std::span<const float> flat,
                   double factor, TensorFile& file) {
  for (const nn::Parameter& parameter : layout.parameters) {
    Tensor tensor(parameter.shape, DType::kF32);
    const auto values = flat.subspan(parameter.offset, tensor.span<float>().size());
    std::ranges::transform(values, tensor.data<float>(), [factor](float value) {
      return static_cast<float>(factor * static_cast<double>(value));
    });
    file.Add(prefix + parameter.name, std::move(tensor));
  }
}

// The trial's first batch.
struct Batch {
  nn::Model model;
  Tensor inputs, labels;
};

absl::StatusOr<Batch> FirstBatch(const Workload& workload) {
  RM_ASSIGN_OR_RETURN(nn::Model model, workload.Build(nn::Mode::kTraining, workload.batch()));
  Tensor inputs(model.inputs.shape, model.inputs.dtype);
  Tensor labels(model.labels.shape, model.labels.dtype);
  std::vector<uint32_t> rows(static_cast<size_t>(workload.batch()));
  std::iota(rows.begin(), rows.end(), 0U);
  RM_RETURN_IF_ERROR(workload.train().Fill(rows, inputs, labels));
  return Batch{std::move(model), std::move(inputs), std::move(labels)};
}

// Losses and first gradients of the trainer's own steps.
absl::Status AddSteps(Trial& trial, int64_t steps, TensorFile& file) {
  const Workload& workload = trial.workload();
  LoneWorker& worker = trial.worker();
  Tensor losses({steps}, DType::kF32);
  for (int64_t step = 0; step < steps; ++step) {
    RM_RETURN_IF_ERROR(worker.Step());
    losses.data<float>()[step] = static_cast<float>(worker.replica().loss());
    if (step > 0) continue;
    AddParameters(workload.layout(), kGradients, worker.steps().gradients(),
                  1 / workload.labels_per_batch(), file);
  }
  file.Add(kLosses, std::move(losses));
  return absl::OkStatus();
}

// The same in f64.
absl::Status AddDoubleSteps(Trial& trial, const Batch& batch, int64_t steps, TensorFile& file) {
  RM_ASSIGN_OR_RETURN(DoubleSteps done,
                      StepInDouble(batch.model, trial.worker().replica().weights(), batch.inputs,
                                   batch.labels, *trial.workload().config().optimizer.sgd, steps));
  for (size_t i = 0; i < done.gradients.size(); ++i)
    file.Add(kGradients + batch.model.parameters[i].name, std::move(done.gradients[i]));
  Tensor losses({steps}, DType::kF64);
  std::ranges::copy(done.losses, losses.data<double>());
  file.Add(kLosses, std::move(losses));
  return absl::OkStatus();
}

// Not every network takes a rate for what it does not have.
absl::StatusOr<bool> HasDropout(const Options& options) {
  RM_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(options));
  RM_ASSIGN_OR_RETURN(const nn::Model model, BuildSubject(subject, 1));
  return std::ranges::any_of(model.graph.nodes(),
                             [](const graph::Node& node) { return node.op->type == "dropout"; });
}

}  // namespace

absl::Status Dump(Options options) {
  RM_ASSIGN_OR_RETURN(const bool has_dropout, HasDropout(options));
  if (has_dropout) options.dropout = 0;
  const auto batch = static_cast<uint32_t>(options.batch);
  RM_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(options));
  RM_ASSIGN_OR_RETURN(const auto trial, Trial::Make(subject, batch, batch, options.kernels));
  const Workload& workload = trial->workload();
  RM_ASSIGN_OR_RETURN(const Batch first, FirstBatch(workload));
  TensorFile file;
  file.Add("inputs", first.inputs.Clone());
  file.Add("labels", first.labels.Clone());
  AddParameters(workload.layout(), "weights/", trial->worker().replica().weights(), 1, file);
  RM_RETURN_IF_ERROR(options.in_double ? AddDoubleSteps(*trial, first, options.dump_steps, file)
                                       : AddSteps(*trial, options.dump_steps, file));
  const training::v1alpha1::Sgd& sgd = *workload.config().optimizer.sgd;
  return file.Write(options.dump, {{"learning_rate", fmt::format("{}", sgd.learning_rate)},
                                   {"momentum", fmt::format("{}", sgd.momentum)}});
}

}  // namespace ringmaster::train::bench

#include "runtime/nn/binding.h"

#include "common/status.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::nn {
namespace {

// The part of a flat buffer that belongs to a Parameter or State.
template <typename Entry>
tensor::Tensor ViewOf(std::span<float> flat, const Entry& entry) {
  return tensor::Tensor::View(flat.data() + entry.offset, entry.shape, tensor::DType::kF32);
}

}  // namespace

absl::Status BindParameters(const Model& model, std::span<float> weights,
                            graph::Executor& executor) {
  for (const Parameter& parameter : model.parameters) {
    RM_RETURN_IF_ERROR(executor.Bind(parameter.name, ViewOf(weights, parameter)));
  }
  return absl::OkStatus();
}

absl::Status BindStates(const Model& model, std::span<float> states, graph::Executor& executor) {
  for (const State& state : model.states) {
    RM_RETURN_IF_ERROR(executor.Bind(state.name, ViewOf(states, state)));
  }
  return absl::OkStatus();
}

absl::Status BindGradients(const Model& model, std::span<float> gradients,
                           graph::Executor& executor) {
  for (const Parameter& parameter : model.parameters) {
    tensor::Tensor view = ViewOf(gradients, parameter);
    RM_RETURN_IF_ERROR(executor.BindOutput(parameter.gradient, view));
  }
  return absl::OkStatus();
}

graph::OutputBlock GradientBlock(const Model& model) {
  graph::OutputBlock block{.bytes = model.parameter_floats * sizeof(float)};
  for (const Parameter& parameter : model.parameters)
    block.offsets.emplace(parameter.gradient, parameter.offset * sizeof(float));
  return block;
}

absl::Status BindStatistics(const Model& model, std::span<float> statistics,
                            graph::Executor& executor) {
  for (const State& state : model.states) {
    tensor::Tensor view = ViewOf(statistics, state);
    RM_RETURN_IF_ERROR(executor.BindOutput(state.statistic, view));
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::nn

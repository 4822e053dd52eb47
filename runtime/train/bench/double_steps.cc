#include "runtime/train/bench/double_steps.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::train::bench {
namespace {

using graph::Executor;
using graph::Graph;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

DType Wider(DType dtype) {
  return dtype == DType::kF32 ? DType::kF64 : dtype;
}

// A value that comes from outside, with f64 where it had f32.
ValueId Declare(const graph::Value& value, Graph& to) {
  const DType dtype = Wider(value.spec.dtype);
  switch (value.kind) {
    case graph::ValueKind::kInput:
      return to.Input(value.name, value.spec.shape, dtype);
    case graph::ValueKind::kParameter:
      return to.Parameter(value.name, value.spec.shape, dtype);
    case graph::ValueKind::kState:
      return to.State(value.name, value.spec.shape, dtype);
    case graph::ValueKind::kComputed:
      break;
  }
  return {};
}

// The same computation with f64 where it has f32.
Graph InDouble(const Graph& from) {
  Graph to;
  std::vector<ValueId> now;  // by the old value
  for (const graph::Value& value : from.values()) now.push_back(Declare(value, to));
  const auto now_of = [&](ValueId old) { return now[static_cast<size_t>(old.index)]; };
  for (const graph::Node& node : from.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id.valid() ? now_of(id) : ValueId{});
    // Of the ops whose results have a type that no input says; the others do not look at it.
    const auto dtype = static_cast<DType>(node.attributes.Int("dtype"));
    const auto outputs =
        to.Add(node.op->type, node.attributes.With("dtype", static_cast<int64_t>(Wider(dtype))),
               inputs, node.op->output_count, node.name);
    for (size_t i = 0; i < outputs.size(); ++i)
      now[static_cast<size_t>(node.outputs[i].index)] = outputs[i];
  }
  for (const graph::NamedValue& output : from.outputs())
    to.MarkOutput(output.name, now_of(output.value));
  return to;
}

Tensor ToDouble(const float* values, const tensor::Shape& shape) {
  Tensor wide(shape, DType::kF64);
  std::copy_n(values, shape.elements(), wide.data<double>());
  return wide;
}

// A parameter and what SGD keeps of it.
struct Trained {
  Tensor weight, velocity;
  std::string_view gradient;  // the graph's output
};

// As PyTorch has it: the rate is outside of the velocity.
void Update(Trained& parameter, const Tensor& gradient_sum, double count,
            const training::v1alpha1::Sgd& sgd) {
  const auto weight = parameter.weight.span<double>(), velocity = parameter.velocity.span<double>();
  const auto sum = gradient_sum.span<double>();
  for (size_t i = 0; i < weight.size(); ++i) {
    velocity[i] = sgd.momentum * velocity[i] + sum[i] / count;
    weight[i] -= sgd.learning_rate * velocity[i];
  }
}

}  // namespace

absl::StatusOr<DoubleSteps> StepInDouble(const nn::Model& model, std::span<const float> weights,
                                         const Tensor& inputs, const Tensor& labels,
                                         const training::v1alpha1::Sgd& sgd, int64_t steps) {
  RM_ASSIGN_OR_RETURN(
      const std::unique_ptr<Executor> executor,
      Executor::Compile(InDouble(model.graph), {.kernels = kernels::Selection::kReference,
                                                .images = tensor::Layout::kRowMajor}));
  const Tensor wide_inputs = inputs.dtype() == DType::kF32
                                 ? ToDouble(inputs.data<float>(), inputs.shape())
                                 : inputs.Clone();
  RM_RETURN_IF_ERROR(executor->Bind(nn::kInputs, wide_inputs));
  RM_RETURN_IF_ERROR(executor->Bind(nn::kLabels, labels));
  std::vector<Trained> parameters;
  for (const nn::Parameter& parameter : model.parameters) {
    parameters.push_back({.weight = ToDouble(weights.data() + parameter.offset, parameter.shape),
                          .velocity = Tensor(parameter.shape, DType::kF64),
                          .gradient = parameter.gradient});
    RM_RETURN_IF_ERROR(executor->Bind(parameter.name, parameters.back().weight));
  }
  const auto count = static_cast<double>(labels.shape().elements());
  DoubleSteps done;
  for (int64_t step = 0; step < steps; ++step) {
    RM_RETURN_IF_ERROR(executor->Run({}));
    RM_ASSIGN_OR_RETURN(const Tensor loss, executor->Output(nn::kLossSum));
    done.losses.push_back(loss.data<double>()[0] / count);
    for (Trained& parameter : parameters) {
      RM_ASSIGN_OR_RETURN(const Tensor sum, executor->Output(parameter.gradient));
      Update(parameter, sum, count, sgd);
      if (step > 0) continue;
      for (double& value : done.gradients.emplace_back(sum.Clone()).span<double>()) value /= count;
    }
  }
  return done;
}

}  // namespace ringmaster::train::bench

#include "runtime/nn/model_builder.h"

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/memory.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/ops.h"

namespace ringmaster::nn {
namespace {

// Past this a model does not fit this runtime's one flat buffer on any machine we know of.
constexpr int64_t kMaxFloats = int64_t{1} << 36;

// Floats that `shape` takes in a flat buffer, or -1 for more than kMaxFloats.
int64_t FloatsOf(const Shape& shape) {
  constexpr auto kLine = static_cast<int64_t>(device::kAlignment / sizeof(float));
  int64_t floats = 1;
  for (const int64_t extent : shape.dims()) {
    if (extent > kMaxFloats / floats) return -1;
    floats *= std::max<int64_t>(extent, 1);
  }
  return (floats + kLine - 1) / kLine * kLine;
}

std::vector<int64_t> BatchedDims(int64_t batch, const Shape& sample) {
  std::vector<int64_t> dims{batch};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return dims;
}

}  // namespace

ValueId ModelBuilder::Inputs() {
  return graph_.Input(kInputs, Shape(BatchedDims(options_.batch, options_.sample.shape)),
                      options_.sample.dtype);
}

ValueId ModelBuilder::Parameter(const std::string& name, const Shape& shape,
                                Initialiser initialiser) {
  const int64_t floats = FloatsOf(shape);
  if (floats < 0 || static_cast<int64_t>(parameter_floats_) + floats > kMaxFloats) {
    graph_.Fail(absl::InvalidArgumentError(
        fmt::format("parameter \"{}\" of shape {}: the model is too large, at most {} parameters",
                    name, shape.ToString(), kMaxFloats)));
    return {};
  }
  const ValueId id = graph_.Parameter(name, shape, tensor::DType::kF32);
  parameters_.push_back({name, shape, initialiser, parameter_floats_, "gradient/" + name});
  parameter_ids_.push_back(id);
  parameter_floats_ += static_cast<size_t>(floats);
  return id;
}

ValueId ModelBuilder::RunningStatistic(const std::string& name, const Shape& shape, float initial,
                                       double momentum, ValueId statistic) {
  const int64_t floats = FloatsOf(shape);
  const bool is_own = !training() || !statistic.valid() || graph_.shape(statistic) == shape;
  if (floats < 0 || !is_own) {
    graph_.Fail(absl::InvalidArgumentError(fmt::format(
        "running statistic \"{}\" of shape {}: {}", name, shape.ToString(),
        floats < 0 ? "too large" : "its statistic is " + graph_.spec(statistic).ToString())));
    return {};
  }
  states_.push_back({name, shape, initial, state_floats_, "statistic/" + name, momentum});
  state_floats_ += static_cast<size_t>(floats);
  if (!training()) return graph_.State(name, shape, tensor::DType::kF32);
  graph_.MarkOutput(states_.back().statistic, statistic);
  return {};
}

ValueId ModelBuilder::Fail(const std::string& layer, const std::string& message) {
  graph_.Fail(absl::InvalidArgumentError(fmt::format("layer \"{}\": {}", layer, message)));
  return {};
}

absl::Status ModelBuilder::CheckLogits(ValueId logits) const {
  RM_RETURN_IF_ERROR(graph_.status());
  if (!logits.valid() || static_cast<size_t>(logits.index) >= graph_.values().size()) {
    return absl::InvalidArgumentError(
        "the network ends with no value of its graph; return its logits");
  }
  std::vector<int64_t> wanted = BatchedDims(options_.batch, options_.label_shape);
  if (!options_.independent_labels) wanted.push_back(options_.classes);
  const Shape shape = graph_.shape(logits);
  if (shape == Shape(wanted)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the network ends with {}, but {} of this data need {}: labels of shape {} "
                  "and {} classes",
                  shape.ToString(), WithNoun(options_.batch, "sample"), Shape(wanted).ToString(),
                  options_.label_shape.ToString(), options_.classes));
}

absl::Status ModelBuilder::Differentiate(ValueId loss) {
  RM_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                      graph::Differentiate(graph_, loss, parameter_ids_));
  for (size_t i = 0; i < gradients.size(); ++i) {
    graph_.MarkOutput(parameters_[i].gradient, gradients[i]);
  }
  return graph_.status();
}

graph::LossResult ModelBuilder::AddLoss(ValueId logits, ValueId labels) {
  constexpr char kName[] = "loss";
  if (options_.independent_labels) return graph::BinaryCrossEntropy(graph_, logits, labels, kName);
  switch (options_.loss) {
    case Loss::kMeanSquare:
      return graph::MeanSquare(graph_, logits, labels, kName);
    case Loss::kNegativeLogLikelihood:
      return graph::Nll(graph_, logits, labels, kName);
    case Loss::kCrossEntropy:
      break;
  }
  return graph::SoftmaxCrossEntropy(graph_, logits, labels,
                                    training() ? options_.label_smoothing : 0, kName);
}

absl::StatusOr<Model> ModelBuilder::Finish(std::string name, ValueId inputs, ValueId logits) && {
  RM_RETURN_IF_ERROR(CheckLogits(logits));
  const ValueId labels = graph_.Input(
      kLabels, Shape(BatchedDims(options_.batch, options_.label_shape)), tensor::DType::kI32);
  const graph::LossResult result = AddLoss(logits, labels);
  graph_.MarkOutput(kLossSum, result.loss);
  graph_.MarkOutput(kCorrect, result.correct);
  if (!training()) graph_.MarkOutput(kLogits, logits);
  RM_RETURN_IF_ERROR(graph_.status());
  if (training() && options_.gradients) RM_RETURN_IF_ERROR(Differentiate(result.loss));
  Model model{.name = std::move(name),
              .inputs = graph_.spec(inputs),
              .labels = graph_.spec(labels),
              .parameters = std::move(parameters_),
              .states = std::move(states_),
              .parameter_floats = parameter_floats_,
              .state_floats = state_floats_};
  model.graph = std::move(graph_);
  return model;
}

int64_t Model::ParameterCount() const {
  int64_t count = 0;
  for (const nn::Parameter& parameter : parameters) count += parameter.shape.elements();
  return count;
}

}  // namespace ringmaster::nn

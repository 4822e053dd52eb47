// A replica's way into a checkpoint and back.
//
// Parameters and running statistics keep their names, as other tools expect ("conv1.weight"); the
// optimizer's memory is "optimizer.<buffer>.<parameter>"; counters are text in the metadata.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/data/sample_stream.h"
#include "runtime/train/metadata.h"
#include "runtime/train/replica.h"

namespace ringmaster::train {
namespace {

using checkpoint::Metadata;
using checkpoint::TensorView;

constexpr char kStep[] = "ringmaster.step";
constexpr char kLoss[] = "ringmaster.loss";
constexpr char kAccuracy[] = "ringmaster.accuracy";
constexpr char kSkipped[] = "ringmaster.skipped_steps";
constexpr char kLedger[] = "ringmaster.sample_ledger";
constexpr char kPosition[] = "ringmaster.next_position";
constexpr char kData[] = "ringmaster.data";
constexpr char kSeed[] = "ringmaster.seed";
// What the last evaluation measured; its accuracy is kAccuracy, negative before the first.
constexpr char kEvaluatedStep[] = "ringmaster.evaluation.step";
constexpr char kEvaluationLoss[] = "ringmaster.evaluation.loss";
constexpr char kTop5[] = "ringmaster.evaluation.top5_accuracy";
constexpr char kPerplexity[] = "ringmaster.evaluation.perplexity";
constexpr char kAuroc[] = "ringmaster.evaluation.auroc";
constexpr char kLabelAuroc[] = "ringmaster.evaluation.label_auroc.";  // and the label's number
constexpr char kLabels[] = "ringmaster.evaluation.labels";

template <typename Entry>
TensorView ViewOf(const Entry& entry, const std::string& name, std::span<const float> flat) {
  const auto dims = entry.shape.dims();
  return {.name = name,
          .shape = {dims.begin(), dims.end()},
          .data = std::as_bytes(
              flat.subspan(entry.offset, static_cast<size_t>(entry.shape.elements())))};
}

void SaveEvaluation(const Evaluation& evaluation, Metadata& metadata) {
  const auto save = [&](const std::string& key, const auto& value) {
    metadata[key] = fmt::format("{}", value);
  };
  save(kAccuracy, evaluation.accuracy);
  save(kEvaluatedStep, evaluation.step);
  save(kEvaluationLoss, evaluation.loss);
  if (evaluation.top5_accuracy) save(kTop5, *evaluation.top5_accuracy);
  if (evaluation.perplexity) save(kPerplexity, *evaluation.perplexity);
  if (evaluation.auroc) save(kAuroc, *evaluation.auroc);
  const auto& labels = evaluation.label_aurocs;
  if (!labels.empty()) save(kLabels, labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i]) save(fmt::format("{}{}", kLabelAuroc, i), *labels[i]);
  }
}

absl::StatusOr<std::optional<double>> MaybeNumber(const Metadata& metadata,
                                                  const std::string& key) {
  if (!metadata.contains(key)) return std::nullopt;
  RM_ASSIGN_OR_RETURN(const double value, Number<double>(metadata, key));
  return value;
}

// Nothing where there was none yet, or where a version wrote it that kept the accuracy alone: the
// next evaluation makes up for it.
absl::StatusOr<std::optional<Evaluation>> ReadEvaluation(const Metadata& metadata) {
  if (!metadata.contains(kEvaluatedStep)) return std::nullopt;
  Evaluation evaluation;
  RM_ASSIGN_OR_RETURN(evaluation.accuracy, Number<double>(metadata, kAccuracy));
  RM_ASSIGN_OR_RETURN(evaluation.step, Number<int64_t>(metadata, kEvaluatedStep));
  RM_ASSIGN_OR_RETURN(evaluation.loss, Number<double>(metadata, kEvaluationLoss));
  RM_ASSIGN_OR_RETURN(evaluation.top5_accuracy, MaybeNumber(metadata, kTop5));
  RM_ASSIGN_OR_RETURN(evaluation.perplexity, MaybeNumber(metadata, kPerplexity));
  RM_ASSIGN_OR_RETURN(evaluation.auroc, MaybeNumber(metadata, kAuroc));
  if (!metadata.contains(kLabels)) return evaluation;
  RM_ASSIGN_OR_RETURN(const auto labels, Number<uint16_t>(metadata, kLabels));
  for (uint16_t i = 0; i < labels; ++i) {
    RM_ASSIGN_OR_RETURN(const std::optional<double> auroc,
                        MaybeNumber(metadata, fmt::format("{}{}", kLabelAuroc, i)));
    evaluation.label_aurocs.push_back(auroc);
  }
  return evaluation;
}

absl::Status Differs(const std::string& what) {
  return absl::FailedPreconditionError("it was written for " + what);
}

// Every tensor that is wanted, or what is wrong with the first that does not fit.
absl::StatusOr<std::vector<const TensorView*>> FindAll(const checkpoint::Checkpoint& checkpoint,
                                                       std::span<const TensorView> wanted) {
  std::vector<const TensorView*> found;
  for (const TensorView& tensor : wanted) {
    const TensorView* its = checkpoint.Find(tensor.name);
    if (its == nullptr) {
      return absl::FailedPreconditionError(
          fmt::format("has no {}: it is another network's or optimizer's", tensor.name));
    }
    if (its->dtype != tensor.dtype || its->shape != tensor.shape) {
      return Differs(fmt::format(
          "a network whose {} has another shape or type: {} [{}], not {} [{}]", tensor.name,
          its->dtype, fmt::join(its->shape, ", "), tensor.dtype, fmt::join(tensor.shape, ", ")));
    }
    found.push_back(its);
  }
  return found;
}

// The views are of the replica's own, mutable memory.
void Take(std::span<const TensorView> mine, std::span<const TensorView* const> its) {
  for (size_t i = 0; i < mine.size(); ++i) {
    std::memcpy(const_cast<std::byte*>(mine[i].data.data()), its[i]->data.data(),
                mine[i].data.size());
  }
}

// Without those that match one of `patterns`, each of which must match something.
absl::StatusOr<std::vector<TensorView>> Without(std::span<const std::string> patterns,
                                                std::vector<TensorView> tensors) {
  const auto is = [](const std::string& pattern) {
    return [&pattern](const TensorView& tensor) { return Matches(pattern, tensor.name); };
  };
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (std::none_of(tensors.begin(), tensors.end(), is(patterns[i]))) {
      return absl::InvalidArgumentError(fmt::format(
          "except[{}]: '{}' is the name of no parameter and no running statistic", i, patterns[i]));
    }
  }
  std::erase_if(tensors, [&](const TensorView& tensor) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return is(pattern)(tensor); });
  });
  return tensors;
}

}  // namespace

std::vector<TensorView> Replica::WeightTensors() {
  const nn::Model& layout = workload_->layout();
  std::vector<TensorView> tensors;
  for (const nn::Parameter& parameter : layout.parameters) {
    tensors.push_back(ViewOf(parameter, parameter.name, weights_.span()));
  }
  for (const nn::State& state : layout.states) {
    tensors.push_back(ViewOf(state, state.name, states_.span()));
  }
  return tensors;
}

std::vector<TensorView> Replica::Tensors() {
  const nn::Model& layout = workload_->layout();
  std::vector<TensorView> tensors = WeightTensors();
  for (const optim::StateBuffer& buffer : optimizer_->state()) {
    for (const nn::Parameter& parameter : layout.parameters) {
      tensors.push_back(ViewOf(
          parameter, fmt::format("optimizer.{}.{}", buffer.name, parameter.name), buffer.values));
    }
  }
  return tensors;
}

Metadata Replica::Counters() const {
  Metadata counters = {{kStep, fmt::format("{}", step_)},
                       {kLoss, fmt::format("{}", loss_)},
                       {kAccuracy, "-1"},
                       {kSkipped, fmt::format("{}", skipped_steps_)},
                       {kLedger, ledger_.digest()},
                       {kPosition, fmt::format("{}", ledger_.next_position())},
                       {kData, workload_->data_fingerprint()},
                       {kSeed, fmt::format("{}", workload_->seed())}};
  if (evaluation_) SaveEvaluation(*evaluation_, counters);
  improvement_.Save(counters);
  return counters;
}

absl::Status Replica::Restore(const checkpoint::Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata();
  RM_ASSIGN_OR_RETURN(const auto step, Number<uint64_t>(metadata, kStep));
  RM_ASSIGN_OR_RETURN(const auto loss, Number<double>(metadata, kLoss));
  RM_ASSIGN_OR_RETURN(const std::optional<Evaluation> evaluation, ReadEvaluation(metadata));
  RM_ASSIGN_OR_RETURN(const auto skipped, Number<uint64_t>(metadata, kSkipped));
  if (skipped > step) {
    return absl::DataLossError(
        fmt::format("its {} is {}, more than its {} steps", kSkipped, skipped, step));
  }
  RM_ASSIGN_OR_RETURN(const auto seed, Number<uint64_t>(metadata, kSeed));
  RM_ASSIGN_OR_RETURN(const auto position, Number<uint64_t>(metadata, kPosition));
  if (Text(metadata, kData) != workload_->data_fingerprint()) return Differs("other data");
  if (seed != workload_->seed()) return Differs(fmt::format("seed {}", seed));
  if (position != data::FirstPosition(step, workload_->batch())) {
    return Differs("another batch size");
  }
  const std::vector<TensorView> mine = Tensors();
  RM_ASSIGN_OR_RETURN(const std::vector<const TensorView*> found, FindAll(checkpoint, mine));
  Improvement improvement = improvement_;
  RM_RETURN_IF_ERROR(improvement.Restore(metadata));
  // On an error it is as it was.
  RM_RETURN_IF_ERROR(ledger_.Restore(position, Text(metadata, kLedger)));
  // From here on nothing fails.
  Take(mine, found);
  step_ = step;
  loss_ = loss;
  evaluation_ = evaluation;
  improvement_ = improvement;
  skipped_steps_ = skipped;
  return absl::OkStatus();
}

absl::Status Replica::TakeWeights(const checkpoint::Checkpoint& checkpoint,
                                  std::span<const std::string> except) {
  RM_ASSIGN_OR_RETURN(const std::vector<TensorView> mine, Without(except, WeightTensors()));
  RM_ASSIGN_OR_RETURN(const std::vector<const TensorView*> found, FindAll(checkpoint, mine));
  Take(mine, found);
  return absl::OkStatus();
}

}  // namespace ringmaster::train

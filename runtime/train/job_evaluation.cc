#include "runtime/train/job_evaluation.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/available_memory.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/lone_communicator.h"
#include "runtime/train/mean_prediction.h"
#include "runtime/train/replica.h"

namespace ringmaster::train {
namespace {

using checkpoint::CheckpointId;

// For what is yet to come: the predictions, an evaluation's values, and weights as they are loaded,
// twice at most.
absl::Status CheckRoom(const Workload& workload) {
  const auto needed =
      static_cast<int64_t>(MeanPrediction::BytesFor(workload) + workload.evaluation_bytes() +
                           2 * workload.lasting_bytes());
  const std::optional<int64_t> available = device::AvailableMemory();
  if (!available || needed <= *available) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "the predictions of all {} held-out samples need {} of memory, and {} are left; hold out "
      "fewer, or evaluate the models one at a time",
      workload.held_out().size(), WithUnit(static_cast<uint64_t>(needed)),
      WithUnit(static_cast<uint64_t>(*available))));
}

// The name of what was found.
std::string NameOf(const SavedWeights& saved, const std::optional<CheckpointId>& found) {
  if (!found) return saved.path.string();
  return fmt::format("{}, step {}", saved.path.string(), found->step);
}

// What is measured of every model: its name for programs, its heading and its value.
struct Column {
  const char* field;
  const char* heading;
  std::optional<double> (*value)(const Evaluation&);
};

constexpr Column kColumns[] = {
    {"loss", "loss", [](const Evaluation& e) { return std::optional(e.loss); }},
    {"accuracy", "accuracy", [](const Evaluation& e) { return std::optional(e.accuracy); }},
    {"top5Accuracy", "top 5", [](const Evaluation& e) { return e.top5_accuracy; }},
    {"perplexity", "perplexity", [](const Evaluation& e) { return e.perplexity; }},
    {"auroc", "AUROC", [](const Evaluation& e) { return e.auroc; }},
};

std::string MeanName(const JobEvaluation& evaluation) {
  return fmt::format("mean of {}", evaluation.models.size());
}

void AddRow(const std::string& name, const Evaluation& evaluation, size_t width,
            std::string& table) {
  table += fmt::format("{:<{}}", name, width);
  for (const Column& column : kColumns) {
    const std::optional<double> value = column.value(evaluation);
    table += fmt::format("  {:>10}", value ? fmt::format("{:.4f}", *value) : "-");
  }
  table += "\n";
}

nlohmann::json ObjectOf(const Evaluation& evaluation, std::span<const std::string> label_names) {
  nlohmann::json object = nlohmann::json::object();
  for (const Column& column : kColumns) {
    if (const std::optional<double> value = column.value(evaluation)) object[column.field] = *value;
  }
  for (size_t i = 0; i < evaluation.label_aurocs.size(); ++i) {
    nlohmann::json label{{"name", label_names[i]}};
    if (evaluation.label_aurocs[i]) label["auroc"] = *evaluation.label_aurocs[i];
    object["labels"].push_back(std::move(label));
  }
  return object;
}

}  // namespace

absl::StatusOr<JobEvaluation> EvaluateSaved(const Workload& workload, kernels::Selection kernels,
                                            std::span<const SavedWeights> saved) {
  if (workload.held_out().size() == 0) {
    return absl::InvalidArgumentError(
        "the job holds out no samples to evaluate on; see spec.trainer.data");
  }
  const bool are_several = saved.size() > 1;
  RM_ASSIGN_OR_RETURN(const LoneCommunicator alone, LoneCommunicator::Create());
  RM_ASSIGN_OR_RETURN(Replica replica, Replica::Create(workload));
  if (are_several) RM_RETURN_IF_ERROR(CheckRoom(workload));
  Evaluator evaluator(workload, kernels, replica.weights(), replica.states());
  std::optional<MeanPrediction> together;
  if (are_several) {
    together.emplace(workload);
    evaluator.Tell(
        [&together](data::RowRange rows, std::span<const float> scores,
                    std::span<const int32_t> labels) { together->Add(rows, scores, labels); });
  }
  JobEvaluation result;
  for (const SavedWeights& one : saved) {
    RM_ASSIGN_OR_RETURN(const std::optional<CheckpointId> found, Find(one));
    RM_ASSIGN_OR_RETURN(const checkpoint::Checkpoint loaded, Load(one.path, found));
    if (const absl::Status taken = replica.TakeWeights(loaded, {}); !taken.ok())
      return absl::InvalidArgumentError(one.path.string() + ": " + Message(taken));
    RM_RETURN_IF_ERROR(evaluator.Compute(*alone));
    RM_ASSIGN_OR_RETURN(const std::optional<Evaluation> measured,
                        evaluator.Reduce(found ? found->step : 0, *alone));
    result.models.push_back({.name = NameOf(one, found), .evaluation = measured.value()});
  }
  result.label_names = workload.held_out().format().label_names;
  if (together) result.mean = together->Measure(saved.size());
  return result;
}

std::string ToTable(const JobEvaluation& evaluation) {
  constexpr char kHeading[] = "weights";
  size_t width = std::max(sizeof(kHeading) - 1, MeanName(evaluation).size());
  for (const SavedEvaluation& model : evaluation.models) width = std::max(width, model.name.size());
  std::string table = fmt::format("{:<{}}", kHeading, width);
  for (const Column& column : kColumns) table += fmt::format("  {:>10}", column.heading);
  table += "\n";
  for (const SavedEvaluation& model : evaluation.models)
    AddRow(model.name, model.evaluation, width, table);
  if (evaluation.mean) AddRow(MeanName(evaluation), *evaluation.mean, width, table);
  return table;
}

std::string ToJson(const JobEvaluation& evaluation) {
  nlohmann::json object{{"models", nlohmann::json::array()}};
  for (const SavedEvaluation& model : evaluation.models) {
    nlohmann::json one = ObjectOf(model.evaluation, evaluation.label_names);
    one["name"] = model.name;
    object["models"].push_back(std::move(one));
  }
  if (evaluation.mean) object["mean"] = ObjectOf(*evaluation.mean, evaluation.label_names);
  // A path may be no UTF-8.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ringmaster::train

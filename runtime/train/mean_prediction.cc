#include "runtime/train/mean_prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/measures.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::LossFunction;

// What is compared: a label's scores, one, or one for each class.
size_t WidthOf(const data::SampleFormat& format) {
  return format.has_independent_labels() ? 1 : static_cast<size_t>(format.classes);
}

size_t LabelsOf(const Workload& workload) {
  return static_cast<size_t>(workload.held_out().size()) *
         static_cast<size_t>(workload.held_out().format().labels());
}

double LogOf(double probability) {
  return std::log(std::max(probability, double{std::numeric_limits<float>::min()}));
}

void AddSoftmax(std::span<const float> scores, std::span<float> sums) {
  const double highest = std::ranges::max(scores);
  double total = 0;
  for (const float score : scores) total += std::exp(double{score} - highest);
  for (size_t i = 0; i < scores.size(); ++i)
    sums[i] += static_cast<float>(std::exp(double{scores[i]} - highest) / total);
}

}  // namespace

MeanPrediction::MeanPrediction(const Workload& workload)
    : workload_(workload),
      width_(WidthOf(workload.held_out().format())),
      sums_(LabelsOf(workload) * width_),
      labels_(LabelsOf(workload)) {}

size_t MeanPrediction::BytesFor(const Workload& workload) {
  return LabelsOf(workload) *
         (WidthOf(workload.held_out().format()) * sizeof(float) + sizeof(int32_t));
}

void MeanPrediction::Add(data::RowRange rows, std::span<const float> scores,
                         std::span<const int32_t> labels) {
  const data::SampleFormat& format = workload_.held_out().format();
  const auto first = static_cast<size_t>(rows.begin * format.labels());
  std::ranges::copy(labels, labels_.begin() + static_cast<ptrdiff_t>(first));
  const std::span<float> sums = std::span(sums_).subspan(first * width_, scores.size());
  if (format.has_independent_labels()) {
    for (size_t i = 0; i < scores.size(); ++i)
      sums[i] += static_cast<float>(1 / (1 + std::exp(-double{scores[i]})));
  } else if (workload_.config().loss == LossFunction::kMeanSquare) {
    for (size_t i = 0; i < scores.size(); ++i) sums[i] += scores[i];
  } else {
    for (size_t i = 0; i < scores.size(); i += width_)
      AddSoftmax(scores.subspan(i, width_), sums.subspan(i, width_));
  }
}

double MeanPrediction::LossOf(std::span<const float> predicted, int32_t label) const {
  if (workload_.held_out().format().has_independent_labels()) {
    const double holds = predicted[0];
    return -LogOf(label == 1 ? holds : 1 - holds);
  }
  if (workload_.config().loss != LossFunction::kMeanSquare)
    return -LogOf(predicted[static_cast<size_t>(label)]);
  double sum = 0;
  for (size_t c = 0; c < predicted.size(); ++c) {
    const double off = double{predicted[c]} - (std::cmp_equal(c, label) ? 1 : 0);
    sum += off * off;
  }
  return sum / static_cast<double>(predicted.size());
}

Evaluation MeanPrediction::Measure(size_t models, const Evaluation& one) const {
  std::vector<float> mean = sums_;
  for (float& value : mean) value /= static_cast<float>(models);
  const data::SampleFormat& format = workload_.held_out().format();
  const bool independent = format.has_independent_labels();
  double loss = 0;
  int64_t correct = 0;
  std::vector<double> scored;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const std::span<const float> predicted =
        std::span<const float>(mean).subspan(i * width_, width_);
    loss += LossOf(predicted, labels_[i]);
    correct += independent ? (predicted[0] > 0.5F) == (labels_[i] == 1)
                           : CountInTop(1, predicted, format.classes, {&labels_[i], 1});
    if (!one.auroc && one.label_aurocs.empty()) continue;
    scored.push_back(independent ? double{predicted[0]}
                                 : double{predicted[1]} - double{predicted[0]});
    scored.push_back(labels_[i]);
  }
  const auto labels = static_cast<double>(labels_.size());
  Evaluation result{.loss = loss / labels, .accuracy = static_cast<double>(correct) / labels};
  if (one.top5_accuracy) {
    result.top5_accuracy =
        static_cast<double>(CountInTop(5, mean, format.classes, labels_)) / labels;
  }
  if (one.perplexity) result.perplexity = std::exp(result.loss);
  if (!scored.empty()) {
    Aurocs found = AurocsOf(scored, static_cast<size_t>(format.labels()));
    result.auroc = found.mean;
    if (independent) result.label_aurocs = std::move(found.each);
  }
  return result;
}

}  // namespace ringmaster::train

#include "runtime/train/mean_prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/measures.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::LossFunction;

size_t WidthOf(const data::SampleFormat& format) {
  return format.has_independent_labels() ? 2 : static_cast<size_t>(format.classes);
}

size_t LabelsOf(const Workload& workload) {
  return static_cast<size_t>(workload.held_out().size()) *
         static_cast<size_t>(workload.held_out().format().labels());
}

void AddSoftmax(std::span<const float> scores, std::span<double> sums) {
  const double highest = std::ranges::max(scores);
  double total = 0;
  for (const float score : scores) total += std::exp(double{score} - highest);
  for (size_t i = 0; i < scores.size(); ++i)
    sums[i] += std::exp(double{scores[i]} - highest) / total;
}

// How many of a label's sums are higher than its own, or as high and before it: evaluations have
// the first of equals be right (measures.h).
size_t PlaceOf(std::span<const double> sums, int32_t label) {
  const auto own = static_cast<size_t>(label);
  size_t place = 0;
  for (size_t c = 0; c < sums.size(); ++c)
    place += sums[c] > sums[own] || (sums[c] == sums[own] && c < own) ? 1 : 0;
  return place;
}

}  // namespace

MeanPrediction::MeanPrediction(const Workload& workload)
    : workload_(workload),
      averages_scores_(workload.config().loss == LossFunction::kMeanSquare &&
                       !workload.held_out().format().has_independent_labels()),
      width_(WidthOf(workload.held_out().format())),
      sums_(LabelsOf(workload) * width_),
      labels_(LabelsOf(workload)) {}

size_t MeanPrediction::BytesFor(const Workload& workload) {
  size_t each = WidthOf(workload.held_out().format()) * sizeof(double) + sizeof(int32_t);
  if (MeasuredOf(workload).auroc) each += 2 * sizeof(double) + sizeof(Scored);
  return LabelsOf(workload) * each;
}

void MeanPrediction::Add(data::RowRange rows, std::span<const float> scores,
                         std::span<const int32_t> labels) {
  const data::SampleFormat& format = workload_.held_out().format();
  const auto first = static_cast<size_t>(rows.begin * format.labels());
  std::ranges::copy(labels, labels_.begin() + static_cast<ptrdiff_t>(first));
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::span<double> sums = std::span(sums_).subspan((first + i) * width_, width_);
    if (format.has_independent_labels()) {
      AddSoftmax(std::array{0.0F, scores[i]}, sums);
      continue;
    }
    const std::span<const float> own = scores.subspan(i * width_, width_);
    if (averages_scores_) {
      for (size_t c = 0; c < width_; ++c) sums[c] += own[c];
    } else {
      AddSoftmax(own, sums);
    }
  }
}

double MeanPrediction::LossOf(std::span<const double> sums, size_t models, int32_t label) const {
  const auto count = static_cast<double>(models);
  if (!averages_scores_) {
    const double probability = sums[static_cast<size_t>(label)] / count;
    return -std::log(std::max(probability, double{std::numeric_limits<float>::min()}));
  }
  double loss = 0;
  for (size_t c = 0; c < sums.size(); ++c) {
    const double off = sums[c] / count - (std::cmp_equal(c, label) ? 1 : 0);
    loss += off * off;
  }
  return loss / static_cast<double>(sums.size());
}

Evaluation MeanPrediction::Measure(size_t models) const {
  constexpr size_t kTop = 5;
  const data::SampleFormat& format = workload_.held_out().format();
  const Measured measured = MeasuredOf(workload_);
  double loss = 0;
  size_t correct = 0, in_top5 = 0;
  std::vector<double> scored;
  if (measured.auroc) scored.reserve(2 * labels_.size());
  for (size_t i = 0; i < labels_.size(); ++i) {
    const std::span<const double> sums = std::span(sums_).subspan(i * width_, width_);
    loss += LossOf(sums, models, labels_[i]);
    const size_t place = PlaceOf(sums, labels_[i]);
    correct += place == 0 ? 1 : 0;
    in_top5 += place < kTop ? 1 : 0;
    if (!measured.auroc) continue;
    scored.push_back(sums[1] - sums[0]);
    scored.push_back(labels_[i]);
  }
  const auto labels = static_cast<double>(labels_.size());
  Evaluation result{.loss = loss / labels, .accuracy = static_cast<double>(correct) / labels};
  if (measured.top5) result.top5_accuracy = static_cast<double>(in_top5) / labels;
  if (measured.perplexity) result.perplexity = std::exp(result.loss);
  if (measured.auroc) {
    Aurocs found = AurocsOf(scored, static_cast<size_t>(format.labels()));
    result.auroc = found.mean;
    if (format.has_independent_labels()) result.label_aurocs = std::move(found.each);
  }
  return result;
}

}  // namespace ringmaster::train

#include "runtime/train/improvement.h"

#include <cmath>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"
#include "runtime/train/metadata.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::BetterBy;
using training::v1alpha1::Metric;

constexpr char kBest[] = "ringmaster.best";
constexpr char kProgress[] = "ringmaster.early_stop";
constexpr char kStale[] = "ringmaster.early_stop.stale_evaluations";

// In the middle of a sentence.
const char* InWords(Metric metric) {
  switch (metric) {
    case Metric::kAccuracy:
      return "accuracy";
    case Metric::kTop5:
      return "top-5 accuracy";
    case Metric::kPerplexity:
      return "perplexity";
    case Metric::kAuroc:
      return "AUROC";
    case Metric::kLoss:
    case Metric::kUnspecified:
      break;
  }
  return "loss";
}

}  // namespace

std::optional<double> ValueOf(Metric metric, const Evaluation& evaluation) {
  switch (metric) {
    case Metric::kAccuracy:
      return evaluation.accuracy;
    case Metric::kTop5:
      return evaluation.top5_accuracy;
    case Metric::kPerplexity:
      return evaluation.perplexity;
    case Metric::kAuroc:
      return evaluation.auroc;
    case Metric::kLoss:
    case Metric::kUnspecified:
      break;
  }
  return evaluation.loss;
}

Improvement::Improvement(const training::v1alpha1::Evaluation& config)
    : metric_(training::v1alpha1::MetricOf(config)), early_stop_(config.early_stop) {}

void Improvement::Add(const Evaluation& evaluation) {
  const std::optional<double> value = ValueOf(metric_, evaluation);
  const bool known = value && std::isfinite(*value);
  const auto passes = [&](const std::optional<Mark>& mark, double by) {
    return known && (!mark || BetterBy(metric_, *value, mark->value) > by);
  };
  ++stale_;
  if (passes(progress_, early_stop_ ? early_stop_->min_delta : 0)) {
    progress_ = Mark{evaluation.step, *value};
    stale_ = 0;
  }
  if (passes(best_, 0)) best_ = Mark{evaluation.step, *value};
}

bool Improvement::ShouldStop() const {
  return early_stop_ && stale_ >= early_stop_->patience;
}

std::string Improvement::WhyItStops() const {
  const char* verb = training::v1alpha1::LessIsBetter(metric_) ? "fallen" : "risen";
  const double delta = early_stop_ ? early_stop_->min_delta : 0;
  std::string text = fmt::format("the {} has not {}", InWords(metric_), verb);
  if (delta > 0) text += fmt::format(" by more than {:g}", delta);
  text += fmt::format(" in {}", WithNoun(stale_, "evaluation"));
  if (progress_) text += fmt::format(", since step {} ({:.4g})", progress_->step, progress_->value);
  return text;
}

void Improvement::Save(checkpoint::Metadata& metadata) const {
  const auto save = [&](const char* key, const std::optional<Mark>& mark) {
    if (!mark) return;
    metadata[std::string(key) + ".step"] = fmt::format("{}", mark->step);
    metadata[std::string(key) + ".value"] = fmt::format("{}", mark->value);
  };
  save(kBest, best_);
  save(kProgress, progress_);
  metadata[kStale] = fmt::format("{}", stale_);
}

absl::Status Improvement::Restore(const checkpoint::Metadata& metadata, const char* key,
                                  std::optional<Mark>& mark) {
  const std::string step = std::string(key) + ".step";
  mark.reset();
  if (!metadata.contains(step)) return absl::OkStatus();
  mark.emplace();
  RM_ASSIGN_OR_RETURN(mark->step, Number<int64_t>(metadata, step));
  RM_ASSIGN_OR_RETURN(mark->value, Number<double>(metadata, std::string(key) + ".value"));
  return absl::OkStatus();
}

absl::Status Improvement::Restore(const checkpoint::Metadata& metadata) {
  std::optional<Mark> best, progress;
  int64_t stale = 0;
  RM_RETURN_IF_ERROR(Restore(metadata, kBest, best));
  RM_RETURN_IF_ERROR(Restore(metadata, kProgress, progress));
  if (metadata.contains(kStale)) {
    RM_ASSIGN_OR_RETURN(stale, Number<int64_t>(metadata, kStale));
  }
  best_ = best;
  progress_ = progress;
  stale_ = stale;
  return absl::OkStatus();
}

}  // namespace ringmaster::train

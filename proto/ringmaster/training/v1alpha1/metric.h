// What trainer and operator have to agree on about metrics: which of two values is the better one
// (the trainer stops early by it, the operator keeps the best checkpoint by it), and which data
// have them.
#ifndef RINGMASTER_PROTO_RINGMASTER_TRAINING_V1ALPHA1_METRIC_H_
#define RINGMASTER_PROTO_RINGMASTER_TRAINING_V1ALPHA1_METRIC_H_

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::training::v1alpha1 {

// With fewer classes nearly every label would be among the five with the highest scores.
inline constexpr int kFewestClassesForTop5 = 6;

// The metric that a job goes by.
inline Metric MetricOf(const Evaluation& evaluation) {
  return evaluation.metric.value_or(Metric::kLoss);
}

inline bool LessIsBetter(Metric metric) {
  return metric == Metric::kLoss || metric == Metric::kPerplexity;
}

// By how much `value` is better than `other`; negative where it is worse, NaN where one of them is.
inline double BetterBy(Metric metric, double value, double other) {
  return LessIsBetter(metric) ? other - value : value - other;
}

}  // namespace ringmaster::training::v1alpha1

#endif  // RINGMASTER_PROTO_RINGMASTER_TRAINING_V1ALPHA1_METRIC_H_

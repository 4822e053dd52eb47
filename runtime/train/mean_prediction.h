// The mean of several models' predictions, and how right it is: what an ensemble predicts.
#ifndef RINGMASTER_RUNTIME_TRAIN_MEAN_PREDICTION_H_
#define RINGMASTER_RUNTIME_TRAIN_MEAN_PREDICTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/sample_stream.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Probabilities are averaged: softmax of a label's scores, or the logistic function of each where
// labels are independent. Where the loss is MeanSquare scores are. Keeps the sums of all held-out
// samples in memory. Not thread-safe; must not outlive the workload.
class MeanPrediction {
 public:
  explicit MeanPrediction(const Workload& workload);

  // Bytes that one of `workload` takes, with what it measures.
  static size_t BytesFor(const Workload& workload);

  // Takes a model's scores of some samples: what an Evaluator tells (evaluator.h). Of every model
  // all samples are wanted once.
  void Add(data::RowRange rows, std::span<const float> scores, std::span<const int32_t> labels);

  // How right the mean of `models` is: all that an Evaluator measures. A probability below the
  // smallest normal f32 counts as that in the loss.
  Evaluation Measure(size_t models) const;

 private:
  double LossOf(std::span<const double> sums, size_t models, int32_t label) const;

  const Workload& workload_;
  const bool averages_scores_;
  const size_t width_;  // numbers of a label: one of each class, or whether it holds, no and yes
  std::vector<double> sums_;  // by label of all samples, one after another
  std::vector<int32_t> labels_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_MEAN_PREDICTION_H_

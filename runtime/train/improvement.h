// Improvement: how a job's metric has come along from evaluation to evaluation, and so which of
// them was the best and when training stops early.
//
// It sees the same evaluations on every rank, so every rank decides alike without asking. It is
// part of each checkpoint: a run that resumes stops at the step where an undisturbed one does.
//
// A value; not thread-safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_IMPROVEMENT_H_
#define RINGMASTER_RUNTIME_TRAIN_IMPROVEMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/evaluation.h"

namespace ringmaster::train {

// The metric's value; nothing where the evaluation did not measure it.
std::optional<double> ValueOf(training::v1alpha1::Metric metric, const Evaluation& evaluation);

class Improvement {
 public:
  explicit Improvement(const training::v1alpha1::Evaluation& config);

  // Takes note of an evaluation. Once each, in the order of steps. A value that is not finite or
  // was not measured is no better than any.
  void Add(const Evaluation& evaluation);

  // Whether no evaluation before that of `step` was as good; `step` is that of the last one.
  bool IsBest(int64_t step) const { return best_ && best_->step == step; }
  // Whether the configuration's patience is at its end. Never where it asks for no early stop.
  bool ShouldStop() const;
  // Why, for people: "the loss has not fallen in 3 evaluations, since step 250 (0.0512)". Only
  // where ShouldStop holds.
  std::string WhyItStops() const;

  // Its way into a checkpoint's metadata and back.
  void Save(checkpoint::Metadata& metadata) const;
  // As it was when it was saved; as new where `metadata` holds nothing of it, as that of a version
  // before it does. kDataLoss where it is not what Save writes; then nothing has changed.
  absl::Status Restore(const checkpoint::Metadata& metadata);

 private:
  struct Mark {
    int64_t step = 0;
    double value = 0;
  };
  static absl::Status Restore(const checkpoint::Metadata& metadata, const char* key,
                              std::optional<Mark>& mark);

  training::v1alpha1::Metric metric_;
  std::optional<training::v1alpha1::EarlyStop> early_stop_;
  std::optional<Mark> best_;      // strictly better than all before
  std::optional<Mark> progress_;  // the last that was better by more than minDelta
  int64_t stale_ = 0;             // evaluations since then
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_IMPROVEMENT_H_

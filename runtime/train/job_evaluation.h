// How right saved weights are on a job's held-out samples.
#ifndef RINGMASTER_RUNTIME_TRAIN_JOB_EVALUATION_H_
#define RINGMASTER_RUNTIME_TRAIN_JOB_EVALUATION_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/saved_weights.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

struct SavedEvaluation {
  std::string name;  // "runs/first, step 13"
  Evaluation evaluation;
};

struct JobEvaluation {
  std::vector<SavedEvaluation> models;   // as they were asked for
  std::optional<Evaluation> mean;        // of several: of the mean of their predictions
  std::vector<std::string> label_names;  // of independent labels
};

// Evaluates each by itself, with the bits that a job measures of these weights, and, where there
// are several, the mean of what they predict. `saved` is not empty. After Workload::CheckModel.
// Blocks while it computes.
//   kInvalidArgument    no sample is held out, or weights are another network's
//   kResourceExhausted  the predictions need more memory than there is
//   and Find's, Load's and Evaluator's
absl::StatusOr<JobEvaluation> EvaluateSaved(const Workload& workload, kernels::Selection kernels,
                                            std::span<const SavedWeights> saved);

// A table for people, and the same for programs: {"models": [{"name": ..., "loss": ...}], "mean":
// {...}}, each with {"labels": [{"name": ..., "auroc": ...}]} where labels are independent.
std::string ToTable(const JobEvaluation& evaluation);
std::string ToJson(const JobEvaluation& evaluation);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_JOB_EVALUATION_H_

// A worker's report of an evaluation as the status holds it.
#ifndef RINGMASTER_OPERATOR_RECONCILE_EVALUATION_RESULT_H_
#define RINGMASTER_OPERATOR_RECONCILE_EVALUATION_RESULT_H_

#include <optional>

#include "operator/reconcile/worker_view.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::reconcile {

inline std::optional<training::v1alpha1::EvaluationResult> ToResult(
    const std::optional<EvaluationReport>& report) {
  if (!report) return std::nullopt;
  return training::v1alpha1::EvaluationResult{.step = report->step,
                                              .loss = report->loss,
                                              .accuracy = report->accuracy,
                                              .top5_accuracy = report->top5_accuracy,
                                              .perplexity = report->perplexity,
                                              .auroc = report->auroc};
}

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_EVALUATION_RESULT_H_

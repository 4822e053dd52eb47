// Everything that one decision may depend on. The caller owns it and keeps it unchanged while
// Reconcile runs.
#ifndef RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_
#define RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_

#include <vector>

#include "common/clock.h"
#include "operator/kube/types.h"
#include "operator/reconcile/settings.h"
#include "operator/reconcile/worker_view.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::reconcile {

struct Observed {
  // With all defaults, derived ones too (operator/api/defaults.h), and validated; its metadata is
  // the server's.
  training::v1alpha1::TrainingJob job;
  // All pods and services that the job owns, deleting ones included. Never null.
  std::vector<kube::ObjectPtr> pods;
  std::vector<kube::ObjectPtr> services;
  WorkersView workers;
  Time now;
  Settings settings;
};

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_

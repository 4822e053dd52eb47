// Everything that one decision may depend on. The caller owns it and keeps it unchanged while
// Reconcile runs.
#ifndef RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_
#define RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "operator/kube/types.h"
#include "operator/reconcile/gang_api.h"
#include "operator/reconcile/settings.h"
#include "operator/reconcile/worker_view.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/check.h"

namespace ringmaster::reconcile {

// A write for the job that the API server has refused for a reason that somebody can mend, and that
// is tried again until then.
struct Refusal {
  std::string reason;  // one of reasons.h
  std::string words;   // the API server's
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct Observed {
  // With all defaults, derived ones too (operator/api/defaults.h); its metadata is the server's.
  // With problems it holds only what could be read (operator/api/salvage.h).
  training::v1alpha1::TrainingJob job;
  // What is wrong with the job; empty when it may run.
  std::vector<schema::Problem> problems;
  // All pods and services that the job owns, deleting ones included. Never null.
  std::vector<kube::ObjectPtr> pods;
  std::vector<kube::ObjectPtr> services;
  // The gang API that the cluster serves and the operator uses, and the job's pod groups of it.
  // Null where there is none.
  const GangApi* gang = nullptr;
  std::vector<kube::ObjectPtr> pod_groups;
  WorkersView workers;
  std::optional<Refusal> refused;  // of the last pass
  Duration creation_held{};        // nothing is to be created for so long
  // This process has carried out no decision for the job yet: what was refused until then is told
  // by the status alone.
  bool nothing_tried = false;
  Time now;
  Settings settings;
};

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_OBSERVED_H_

// What one pass wants done. The order in which it is carried out is part of the contract
// (operator/manager/executor.h): first the status is stored, with the resourceVersion that the
// decision was computed from; only when that has succeeded is anyone told, is anything created or
// deleted, and are events recorded. A crash between any two of these leaves a status from which
// the next pass decides the rest again. A new job's first status may follow its pods
// (operator/manager/status_pace.h): without one the next pass decides from these pods.
#ifndef RINGMASTER_OPERATOR_RECONCILE_DECISION_H_
#define RINGMASTER_OPERATOR_RECONCILE_DECISION_H_

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "operator/controller/reconciler.h"
#include "operator/kube/types.h"
#include "operator/reconcile/worker_command.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::reconcile {

// A pod to create. Its name carries the incarnation that the status holds already, so an
// AlreadyExists from the API is either this very pod (same owner) or a stranger's.
struct CreatePod {
  kube::Json pod;
};
// Deletes this pod and no other of its name.
struct DeletePod {
  std::string name;
  std::string uid;
};
struct CreateService {
  kube::Json service;
};
struct DeleteService {
  std::string name;
  std::string uid;
};
struct CreatePodGroup {
  kube::ResourceType type;
  kube::Json group;
};
// Changes how many pods start together; the patch names the group's uid.
struct ResizePodGroup {
  kube::ResourceType type;
  std::string name;
  kube::Json patch;
};
struct DeletePodGroup {
  kube::ResourceType type;
  std::string name;
  std::string uid;
};
// Deletes the job itself; what it owns is garbage collected.
struct DeleteJob {
  std::string uid;
};
struct RecordEvent {
  bool warning = false;
  // It tells of what this decision creates or deletes: left out when that has not all worked.
  bool tells_of_writes = false;
  std::string reason;
  std::string message;
};
struct SendCommand {
  std::string pod_uid;
  WorkerCommand command;
};

using Action = std::variant<CreatePod, DeletePod, CreateService, DeleteService, CreatePodGroup,
                            ResizePodGroup, DeletePodGroup, DeleteJob, RecordEvent, SendCommand>;

struct Decision {
  std::vector<Action> actions;
  // The whole new status, to be stored if it differs from the observed one. Absent when the job is
  // not ours to write.
  std::optional<training::v1alpha1::TrainingJobStatus> status;
  // Something that is missing is not created by this decision but by a later one, so that nothing
  // can be said of whether it would be refused.
  bool creation_waits = false;
  // Pod UIDs of workers that wait to leave, and may: what they have said is in the status, or is
  // needed no more. Told once the status is stored, as commands are.
  std::vector<std::string> let_go;
  // The round in force, for workers that have not heard of it.
  std::optional<Announcement> announce;
  // Done, or RequeueAfter the next moment that matters. Terminal: the object can never be
  // reconciled.
  controller::ReconcileResult result;
};

inline bool CreatesPods(const Decision& decision) {
  return std::any_of(decision.actions.begin(), decision.actions.end(), [](const Action& action) {
    return std::holds_alternative<CreatePod>(action);
  });
}

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_DECISION_H_

// Carries out a decision, in the order that makes a crash between any two steps harmless:
//
//   1. the status is stored, with the resourceVersion that the decision was computed from. A
//      conflict ends the pass here: nothing was told, created or deleted for a status that is not
//      there. A new job's first status may be left out of the decision, to be stored once its pods
//      are made (status_pace.h): they are incarnation 0 and adopted by whoever comes next;
//   2. the workers are told: the round that is stored now, then commands, and those that wait to
//      leave, that they may;
//   3. pods, services and pod groups are created and deleted, several at a time;
//   4. events are told.
//
// Creation is safe to repeat. A pod's name holds the incarnation that the status holds, so
// AlreadyExists is either our own pod, which the cache has not shown yet, or another's, which is an
// error to be retried until that other pod is gone.
#ifndef RINGMASTER_OPERATOR_MANAGER_EXECUTOR_H_
#define RINGMASTER_OPERATOR_MANAGER_EXECUTOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/controller/events.h"
#include "operator/kube/client.h"
#include "operator/manager/call_meter.h"
#include "operator/manager/made_pods.h"
#include "operator/manager/own_writes.h"
#include "operator/manager/rush.h"
#include "operator/manager/worker_link.h"
#include "operator/reconcile/decision.h"

namespace ringmaster::manager {

// Thread-safe; blocks as the client does.
class Executor {
 public:
  // All references must outlive the executor. At most `parallel` calls are in flight for one
  // decision; 1 keeps their order.
  Executor(kube::Client& client, WorkerLink& link, controller::EventSink& events,
           OwnWrites& own_writes, MadePods& made_pods, Rush& rush, int parallel);

  // `job` is the object that the decision was computed from. The first error; kAborted when the
  // status was stale, in which case nothing has happened; kInvalidArgument when the API refuses to
  // make a pod or a service for what it is, so that trying again would not help; kInternal when it
  // refuses another write so: the status, which an event then tells, or a deletion.
  absl::Status Execute(const kube::Json& job, const reconcile::Decision& decision,
                       CallMeter& meter);

  // Only what the decision has to say to workers: for one whose status differs from the stored one
  // in nothing that they are told of.
  void TellWorkers(const kube::ObjectKey& key, const reconcile::Decision& decision);

 private:
  absl::Status StoreStatus(const kube::Json& job, const reconcile::Decision& decision,
                           CallMeter& meter);
  absl::Status StatusRefused(const kube::Json& job, const absl::Status& why);
  absl::Status Write(const kube::Json& job, const reconcile::Decision& decision, CallMeter& meter);
  absl::Status WriteOne(const kube::Json& job, const reconcile::Action& action);
  absl::Status WriteAction(const kube::Json& job, const reconcile::Action& action);
  absl::Status CreatePod(const kube::Json& job, const kube::Json& pod);
  absl::StatusOr<kube::Json> CreateOwned(const kube::Json& job, const kube::ResourceType& type,
                                         const kube::Json& object);
  absl::Status GroupRefused(const absl::Status& written);
  absl::Status DeleteThis(const kube::ResourceType& type, const kube::ObjectKey& key,
                          const std::string& uid);
  void TellEvents(const kube::Json& job, const reconcile::Decision& decision, bool written);

  kube::Client& client_;
  WorkerLink& link_;
  controller::EventSink& events_;
  OwnWrites& own_writes_;
  MadePods& made_pods_;
  Rush& rush_;
  const int parallel_;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_EXECUTOR_H_

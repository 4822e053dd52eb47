// The operator's core, put together: informers over a client, the queue, the control loop, the
// reconciler. The operator's binary, `ringmaster run` and the scenarios all run this.
//
//   Manager manager({.settings = settings}, client, link, SystemClock());
//   // The link's changes reach the queue:  [&](const ObjectKey& job) { manager.Enqueue(job); }
//   RM_RETURN_IF_ERROR(manager.Start());
//   ...
//   manager.Stop();
//
// Thread safety: Enqueue, Stop and the readers of jobs() and pods() from any thread; the rest from
// one.
#ifndef RINGMASTER_OPERATOR_MANAGER_MANAGER_H_
#define RINGMASTER_OPERATOR_MANAGER_MANAGER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/controller/controller.h"
#include "operator/controller/event_queue.h"
#include "operator/controller/events.h"
#include "operator/controller/informer.h"
#include "operator/controller/work_queue.h"
#include "operator/kube/client.h"
#include "operator/manager/executor.h"
#include "operator/manager/job_reconciler.h"
#include "operator/manager/own_writes.h"
#include "operator/manager/rush.h"
#include "operator/manager/worker_link.h"
#include "operator/reconcile/settings.h"

namespace ringmaster::manager {

struct ManagerOptions {
  std::string ns;  // the namespace that is watched; empty for all
  reconcile::Settings settings;
  // The gang APIs that may be used, the preferred first; the first that the cluster serves is.
  std::vector<const reconcile::GangApi*> gang_apis;
  // How often at least the cluster is asked again for one that it did not serve.
  Duration ask_again_for_gangs = std::chrono::minutes(5);
  int workers = 2;                                     // jobs that are reconciled at once
  int parallel_writes = 8;                             // API calls in flight for one job
  controller::ControllerObserver* observer = nullptr;  // may be null; must outlive the manager
  JobReconciler::OnPass on_pass;                       // may be empty
  JobReconciler::Confirm confirm;                      // may be empty
  Duration status_interval{};  // the least time between writes that say nothing new
  // How long a job's pass waits for more changes of its pods, which come by the worker; twenty
  // times as long in a rush (rush.h).
  Duration gather{};
  // Events are recorded beside the passes (event_queue.h), and wait in a rush.
  // Off: a pass records its own, and its end is theirs.
  bool events_beside = false;
  controller::EventQueue::Observer on_event;  // what came of each, where they are; may be empty
  bool small_caches = false;   // for a cluster's many objects; see controller/informer.h
  controller::Handler on_job;  // told of each change of a job; may be empty
};

class Manager {
 public:
  // All references must outlive the manager.
  Manager(ManagerOptions options, kube::Client& client, WorkerLink& link, const Clock& clock);

  // Returns once the caches are filled and passes run.
  absl::Status Start() { return controller_.Start(); }
  // Returns when no pass runs any more. Idempotent; also done on destruction.
  void Stop();
  // After Stop: returns when the events have been recorded, or have had their time. That may come
  // when another leads already. Idempotent; also done on destruction.
  void WriteEvents();

  // Instead of Start, without threads: pumps the informers and runs every pass that is due by the
  // clock, until nothing is left. See Controller::RunUntilIdle.
  absl::StatusOr<int> RunUntilIdle(int max_passes = 1000) {
    return controller_.RunUntilIdle(max_passes);
  }

  // Something about the job's workers has changed.
  void Enqueue(const kube::ObjectKey& job) { queue_.Add(job); }

  const controller::Informer& jobs() const { return jobs_; }
  const controller::Informer& pods() const { return pods_; }
  const controller::WorkQueue& queue() const { return queue_; }
  // The gang API in use; null for none. Changes when the cluster's answer does.
  const reconcile::GangApi* gang() const { return reconciler_.gang(); }

 private:
  controller::EventSink& Events();
  void Keep(controller::Informer& owned, controller::Gather gather);

  controller::WorkQueue queue_;
  controller::Informer jobs_;
  controller::Informer pods_;
  controller::Informer services_;
  std::vector<GangCache> gangs_;
  Rush rush_;
  controller::EventRecorder recorder_;
  std::unique_ptr<controller::EventQueue> events_;  // null where passes record their own
  OwnWrites own_writes_;
  MadePods made_pods_;
  Executor executor_;
  JobReconciler reconciler_;
  controller::Controller controller_;  // last: its threads use all of the above
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_MANAGER_H_

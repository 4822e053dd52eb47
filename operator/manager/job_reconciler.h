// One pass for one job: reads the caches and the workers' snapshot, asks reconcile, carries out its
// decision.
#ifndef RINGMASTER_OPERATOR_MANAGER_JOB_RECONCILER_H_
#define RINGMASTER_OPERATOR_MANAGER_JOB_RECONCILER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/controller/informer.h"
#include "operator/controller/reconciler.h"
#include "operator/manager/call_meter.h"
#include "operator/manager/executor.h"
#include "operator/manager/job_memory.h"
#include "operator/manager/live_jobs.h"
#include "operator/manager/made_pods.h"
#include "operator/manager/rush.h"
#include "operator/manager/status_pace.h"
#include "operator/reconcile/observed.h"

namespace ringmaster::manager {

// The index of the pod and service informers that the reconciler reads.
inline constexpr char kOwnerIndex[] = "owner";

// The job's pod groups of one gang API; empty, and not Served, where the cluster does not know it.
struct GangCache {
  const reconcile::GangApi* api;
  std::unique_ptr<controller::Informer> groups;  // indexed by kOwnerIndex
};

// Thread-safe for different keys, as the controller calls it.
class JobReconciler : public controller::Reconciler {
 public:
  struct Caches {
    const controller::Informer& jobs;
    const controller::Informer& services;  // indexed by kOwnerIndex
    const std::vector<GangCache>& gangs;   // the preferred first
  };

  // Told after each pass what processor time its thread took (CallMeter::own), and whether it
  // called the API. Thread-safe.
  using OnPass = std::function<void(Duration own, bool called)>;
  // Asked before a job is ended for what its object holds. Where it is not OK the job stays as it
  // is, and the pass is tried again: what cannot be read may be of another version's schema.
  // Thread-safe.
  using Confirm = std::function<absl::Status()>;
  struct Options {
    reconcile::Settings settings;
    Duration status_interval{};  // status_pace.h
    OnPass on_pass;              // may be empty
    Confirm confirm;             // may be empty
  };

  // All references must outlive the reconciler.
  JobReconciler(Caches caches, WorkerLink& link, Executor& executor, OwnWrites& own_writes,
                MadePods& made_pods, const Rush& rush, const Clock& clock, Options options);

  // Retry: a write failed or was stale. A pod that the API refuses for what it is ends the job,
  // with the API's words in its status; where it refuses a write for what may change (a quota, a
  // policy, a name that is taken) the status says so while it is tried again. An object that cannot
  // be read as a TrainingJob is no error here: the decision is to say in its status what is wrong.
  controller::ReconcileResult Reconcile(const kube::ObjectKey& key) override;

  // A cache shows this pod now. To be told from the cache's handler, which has it unpacked.
  void Saw(const kube::ObjectPtr& pod) { live_.Saw(pod); }

  // The gang API in use: the first that the cluster serves; null for none.
  const reconcile::GangApi* gang() const;

 private:
  const GangCache* ServedGang() const;
  reconcile::Observed Observe(const kube::Json& object, const api::StoredJob& stored);
  // What the pass was refused, or that it was not. Whether a refusal that was there is gone.
  bool NoteRefusal(const kube::Json& job, const reconcile::Decision& decision,
                   const absl::Status& done);
  void NoteStatus(const kube::ObjectKey& key, const absl::Status& done);
  void Forget(const kube::ObjectKey& key);
  controller::ReconcileResult Pass(const kube::ObjectKey& key, CallMeter& meter);
  absl::Status ConfirmProblems(const reconcile::Observed& observed, CallMeter& meter) const;
  controller::ReconcileResult Carry(const kube::Json& job, const reconcile::Observed& observed,
                                    CallMeter& meter);
  absl::Status EndRefused(const kube::Json& refused, const absl::Status& why, CallMeter& meter);

  const Caches caches_;
  WorkerLink& link_;
  Executor& executor_;
  OwnWrites& own_writes_;
  MadePods& made_pods_;
  const Clock& clock_;
  const Options options_;
  StatusPace pace_;
  JobMemory memory_;
  LiveJobs live_;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_JOB_RECONCILER_H_

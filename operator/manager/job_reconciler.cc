#include "operator/manager/job_reconciler.h"

#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "operator/api/defaults.h"
#include "operator/api/validation.h"
#include "operator/kube/object.h"
#include "operator/reconcile/reconcile.h"

namespace ringmaster::manager {

using training::v1alpha1::TrainingJob;

JobReconciler::JobReconciler(Caches caches, WorkerLink& link, Executor& executor,
                             OwnWrites& own_writes, const Clock& clock,
                             reconcile::Settings settings)
    : caches_(caches),
      link_(link),
      executor_(executor),
      own_writes_(own_writes),
      clock_(clock),
      settings_(std::move(settings)) {}

absl::StatusOr<reconcile::Observed> JobReconciler::Observe(const kube::ObjectKey& key,
                                                           const kube::Json& object) {
  RM_ASSIGN_OR_RETURN(TrainingJob job, training::v1alpha1::FromJson<TrainingJob>(object));
  std::vector<schema::Problem> problems = api::Validate(job);
  api::ApplyDerivedDefaults(job.spec);
  const std::string uid = kube::Uid(object);
  return reconcile::Observed{.job = std::move(job),
                             .problems = std::move(problems),
                             .pods = caches_.pods.ByIndex(kOwnerIndex, uid),
                             .services = caches_.services.ByIndex(kOwnerIndex, uid),
                             .workers = link_.SnapshotFor(key),
                             .now = clock_.Now(),
                             .settings = settings_};
}

void JobReconciler::Forget(const kube::ObjectKey& key) {
  {
    std::lock_guard lock(mutex_);
    uids_.erase(key);
  }
  link_.Forget(key);
}

// A job that was deleted and made again under its name between two passes begins at round 1, and
// what the workers of the old one said is not about it.
void JobReconciler::ForgetPredecessor(const kube::ObjectKey& key, const std::string& uid) {
  {
    std::lock_guard lock(mutex_);
    const auto [seen, first] = uids_.try_emplace(key, uid);
    if (first || seen->second == uid) return;
    seen->second = uid;
  }
  link_.Forget(key);
}

controller::ReconcileResult JobReconciler::Reconcile(const kube::ObjectKey& key) {
  const kube::ObjectPtr job = own_writes_.Newest(key, caches_.jobs.Get(key));
  if (job == nullptr) {
    Forget(key);
    return controller::Done{};
  }
  ForgetPredecessor(key, kube::Uid(*job));
  const absl::StatusOr<reconcile::Observed> observed = Observe(key, *job);
  if (!observed.ok()) {
    log::Error("the stored object is not a valid TrainingJob",
               {{"job", key.ToString()}, {"error", observed.status()}});
    return controller::Terminal{observed.status()};
  }
  const reconcile::Decision decision = reconcile::Reconcile(*observed);
  if (const absl::Status done = executor_.Execute(*job, decision); !done.ok()) {
    return controller::Retry{done};
  }
  return decision.result;
}

}  // namespace ringmaster::manager

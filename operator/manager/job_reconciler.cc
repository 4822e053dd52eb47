#include "operator/manager/job_reconciler.h"

#include <utility>

#include "common/status.h"
#include "operator/api/salvage.h"
#include "operator/kube/object.h"
#include "operator/reconcile/reconcile.h"

namespace ringmaster::manager {

JobReconciler::JobReconciler(Caches caches, WorkerLink& link, Executor& executor,
                             OwnWrites& own_writes, const Clock& clock,
                             reconcile::Settings settings)
    : caches_(caches),
      link_(link),
      executor_(executor),
      own_writes_(own_writes),
      clock_(clock),
      settings_(std::move(settings)) {}

const GangCache* JobReconciler::ServedGang() const {
  for (const GangCache& cache : caches_.gangs) {
    if (cache.groups->Served()) return &cache;
  }
  return nullptr;
}

const reconcile::GangApi* JobReconciler::gang() const {
  const GangCache* cache = ServedGang();
  return cache == nullptr ? nullptr : cache->api;
}

reconcile::Observed JobReconciler::Observe(const kube::ObjectKey& key, const kube::Json& object) {
  api::StoredJob stored = api::ReadStored(object);
  const std::string uid = kube::Uid(object);
  reconcile::Observed observed{.job = std::move(stored.job),
                               .problems = std::move(stored.problems),
                               .pods = caches_.pods.ByIndex(kOwnerIndex, uid),
                               .services = caches_.services.ByIndex(kOwnerIndex, uid),
                               .workers = link_.SnapshotFor(key),
                               .now = clock_.Now(),
                               .settings = settings_};
  if (const GangCache* cache = ServedGang()) {
    observed.gang = cache->api;
    observed.pod_groups = cache->groups->ByIndex(kOwnerIndex, uid);
  }
  return observed;
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
  return Carry(*job, Observe(key, *job));
}

controller::ReconcileResult JobReconciler::Carry(const kube::Json& job,
                                                 const reconcile::Observed& observed) {
  const reconcile::Decision decision = reconcile::Reconcile(observed);
  absl::Status done = executor_.Execute(job, decision);
  if (absl::IsInvalidArgument(done) && observed.problems.empty())
    done = EndRefused(kube::KeyOf(job), done);
  if (!done.ok()) return controller::Retry{done};
  return decision.result;
}

// What we make of the template would be refused again and again.
absl::Status JobReconciler::EndRefused(const kube::ObjectKey& key, const absl::Status& why) {
  const kube::ObjectPtr job = own_writes_.Newest(key, caches_.jobs.Get(key));
  if (job == nullptr) return why;
  reconcile::Observed observed = Observe(key, *job);
  observed.problems.push_back({"spec.workers.template", Message(why)});
  return executor_.Execute(*job, reconcile::Reconcile(observed));
}

}  // namespace ringmaster::manager

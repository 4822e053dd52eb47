#include "operator/manager/job_reconciler.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "operator/api/salvage.h"
#include "operator/kube/object.h"
#include "operator/reconcile/reconcile.h"

namespace ringmaster::manager {
namespace {

// After `wait`, or earlier where the decision asks for it.
controller::RequeueAfter LookAgain(const controller::ReconcileResult& result, Duration wait) {
  const auto* later = std::get_if<controller::RequeueAfter>(&result);
  return {later == nullptr ? wait : std::min(wait, later->delay)};
}

}  // namespace

JobReconciler::JobReconciler(Caches caches, WorkerLink& link, Executor& executor,
                             OwnWrites& own_writes, MadePods& made_pods, const Clock& clock,
                             Options options)
    : caches_(caches),
      link_(link),
      executor_(executor),
      own_writes_(own_writes),
      made_pods_(made_pods),
      clock_(clock),
      options_(std::move(options)),
      pace_(options_.status_interval, clock) {}

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
                               .pods = made_pods_.With(kOwnerIndex, uid),
                               .services = caches_.services.ByIndex(kOwnerIndex, uid),
                               .workers = link_.SnapshotFor(key),
                               .now = clock_.Now(),
                               .settings = options_.settings};
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
  pace_.Forget(key);
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
  CallMeter meter(clock_);
  controller::ReconcileResult result = Pass(key, meter);
  if (options_.on_pass) options_.on_pass(meter.own(), meter.called());
  return result;
}

controller::ReconcileResult JobReconciler::Pass(const kube::ObjectKey& key, CallMeter& meter) {
  const kube::ObjectPtr job = own_writes_.Newest(key, caches_.jobs.Get(key));
  if (job == nullptr) {
    Forget(key);
    return controller::Done{};
  }
  ForgetPredecessor(key, kube::Uid(*job));
  return Carry(*job, Observe(key, *job), meter);
}

controller::ReconcileResult JobReconciler::Carry(const kube::Json& job,
                                                 const reconcile::Observed& observed,
                                                 CallMeter& meter) {
  const reconcile::Decision decision = reconcile::Reconcile(observed);
  const kube::ObjectKey key = kube::KeyOf(job);
  if (const Duration wait = pace_.WaitFor(key, observed.job.status, decision); wait > Duration(0))
    return LookAgain(decision.result, wait);
  absl::Status done = executor_.Execute(job, decision, meter);
  if (absl::IsInvalidArgument(done) && observed.problems.empty())
    done = EndRefused(key, done, meter);
  if (!done.ok()) {
    pace_.Forget(key);  // nothing may have been written
    return controller::Retry{done};
  }
  if (const auto wait = made_pods_.BelievedFor(kube::Uid(job)))
    return LookAgain(decision.result, *wait);
  return decision.result;
}

// What we make of the template would be refused again and again.
absl::Status JobReconciler::EndRefused(const kube::ObjectKey& key, const absl::Status& why,
                                       CallMeter& meter) {
  const kube::ObjectPtr job = own_writes_.Newest(key, caches_.jobs.Get(key));
  if (job == nullptr) return why;
  reconcile::Observed observed = Observe(key, *job);
  observed.problems.push_back({"spec.workers.template", Message(why)});
  return executor_.Execute(*job, reconcile::Reconcile(observed), meter);
}

}  // namespace ringmaster::manager

#include "operator/manager/job_reconciler.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "operator/api/salvage.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/reconcile.h"

namespace ringmaster::manager {
namespace {

constexpr Duration kAtOnce = std::chrono::milliseconds(1);

// After `wait`, or earlier where the decision asks for it.
controller::RequeueAfter LookAgain(const controller::ReconcileResult& result, Duration wait) {
  const auto* later = std::get_if<controller::RequeueAfter>(&result);
  return {later == nullptr ? wait : std::min(wait, later->delay)};
}

// Nothing where the write has worked, or may in a moment, or the job is to blame.
std::optional<reconcile::Refusal> RefusalOf(const absl::Status& done) {
  const char* reason = nullptr;
  if (absl::IsPermissionDenied(done)) reason = reconcile::kReasonForbidden;
  if (absl::IsAlreadyExists(done)) reason = reconcile::kReasonNameTaken;
  if (absl::IsFailedPrecondition(done)) reason = reconcile::kReasonPodGroupRefused;
  if (reason == nullptr) return std::nullopt;
  return reconcile::Refusal{.reason = reason, .words = Message(done)};
}

}  // namespace

JobReconciler::JobReconciler(Caches caches, WorkerLink& link, Executor& executor,
                             OwnWrites& own_writes, MadePods& made_pods, const Rush& rush,
                             const Clock& clock, Options options)
    : caches_(caches),
      link_(link),
      executor_(executor),
      own_writes_(own_writes),
      made_pods_(made_pods),
      clock_(clock),
      options_(std::move(options)),
      pace_(options_.status_interval, clock, rush),
      memory_(clock) {}

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

reconcile::Observed JobReconciler::Observe(const kube::Json& object, const api::StoredJob& stored) {
  const kube::ObjectKey key = kube::KeyOf(object);
  const std::string uid = kube::Uid(object);
  reconcile::Observed observed{.job = stored.job,
                               .problems = stored.problems,
                               .pods = made_pods_.With(kOwnerIndex, uid),
                               .services = caches_.services.ByIndex(kOwnerIndex, uid),
                               .workers = link_.SnapshotFor(key),
                               .refused = memory_.Tell(key),
                               .creation_held = memory_.CreationHeld(key, kube::Generation(object)),
                               .nothing_tried = !memory_.Tried(key),
                               .now = clock_.Now(),
                               .settings = options_.settings};
  if (!observed.job.status) observed.job.status = memory_.FirstStatus(key);
  if (const GangCache* cache = ServedGang()) {
    observed.gang = cache->api;
    observed.pod_groups = cache->groups->ByIndex(kOwnerIndex, uid);
  }
  return observed;
}

bool JobReconciler::NoteRefusal(const kube::Json& job, const reconcile::Decision& decision,
                                const absl::Status& done) {
  const kube::ObjectKey key = kube::KeyOf(job);
  if (const auto refusal = RefusalOf(done))
    memory_.NoteRefused(key, kube::Generation(job), *refusal);
  if (!done.ok()) return false;
  if (!decision.creation_waits) return memory_.NoteTaken(key);
  memory_.NoteTried(key);
  return false;
}

void JobReconciler::NoteStatus(const kube::ObjectKey& key, const absl::Status& done) {
  if (kube::Reason(done) == reconcile::kReasonStatusRefused) {
    memory_.NoteStatusRefused(key);
  } else {
    memory_.NoteStatusTaken(key, /*stored=*/done.ok());
  }
}

void JobReconciler::Forget(const kube::ObjectKey& key) {
  memory_.Forget(key);
  pace_.Forget(key);
  live_.Forget(key);
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
  // A job that was deleted and made again under its name between two passes begins at round 1, and
  // what the workers of the old one said is not about it.
  if (memory_.Meet(key, kube::Uid(*job))) link_.Forget(key);
  std::shared_ptr<const api::StoredJob> stored = live_.Read(job);
  const reconcile::Observed observed = Observe(*job, *stored);
  controller::ReconcileResult result = Carry(*job, observed, meter);
  live_.Keep(job, std::move(stored), observed,
             /*is_made=*/made_pods_.LookAgainIn(kube::Uid(*job)).has_value());
  return result;
}

absl::Status JobReconciler::ConfirmProblems(const reconcile::Observed& observed,
                                            CallMeter& meter) const {
  const auto& status = observed.job.status;
  const bool ended = status && reconcile::IsFinished(*status);
  const bool ends = !observed.problems.empty() && !ended && reconcile::IsOurs(observed);
  if (!ends || !options_.confirm) return absl::OkStatus();
  return meter.Time([&] { return options_.confirm(); });
}

controller::ReconcileResult JobReconciler::Carry(const kube::Json& job,
                                                 const reconcile::Observed& observed,
                                                 CallMeter& meter) {
  if (const absl::Status sure = ConfirmProblems(observed, meter); !sure.ok())
    return controller::Retry{sure};
  reconcile::Decision decision = reconcile::Reconcile(observed);
  const kube::ObjectKey key = kube::KeyOf(job);
  const bool stored = kube::Find(job, {"status"}) != nullptr;
  const bool news = decision.status && (!stored || decision.status != observed.job.status);
  if (const Duration held = memory_.StatusHeld(key); news && held > Duration(0))
    return controller::RequeueAfter{held};
  if (const Duration wait = pace_.WaitFor(key, observed.job.status, decision, stored);
      wait > Duration(0)) {
    executor_.TellWorkers(key, decision);
    return LookAgain(decision.result, wait);
  }
  std::optional<training::v1alpha1::TrainingJobStatus> first;  // that follows its pods
  if (!observed.job.status && observed.pods.empty() && pace_.PodsFirst(decision))
    first.swap(decision.status);
  const bool writes_status = news && !first;
  if (!news) decision.status.reset();
  const Duration called_before = meter.in_calls();
  absl::Status done = executor_.Execute(job, decision, meter);
  // Then the one call was that.
  if (writes_status && decision.actions.empty() && done.ok())
    pace_.Took(meter.in_calls() - called_before);
  const bool refused = absl::IsInvalidArgument(done) && observed.problems.empty();
  if (refused) done = EndRefused(job, done, meter);
  if (writes_status || refused) NoteStatus(key, done);
  const bool taken_at_last = NoteRefusal(job, decision, done);
  if (!done.ok()) {
    pace_.Forget(key);  // nothing may have been written
    return controller::Retry{done};
  }
  if (taken_at_last) return LookAgain(decision.result, kAtOnce);
  if (first) {
    memory_.KeepFirstStatus(key, *std::move(first));
    return LookAgain(decision.result, options_.status_interval);
  }
  if (const auto wait = made_pods_.LookAgainIn(kube::Uid(job)))
    return LookAgain(decision.result, *wait);
  return decision.result;
}

// What we make of the template would be refused again and again: Executor says so of nothing else.
absl::Status JobReconciler::EndRefused(const kube::Json& refused, const absl::Status& why,
                                       CallMeter& meter) {
  const kube::ObjectKey key = kube::KeyOf(refused);
  const kube::ObjectPtr job = own_writes_.Newest(key, caches_.jobs.Get(key));
  if (job == nullptr) return why;
  // Another job of that name, or another template, is not to blame.
  if (kube::Uid(*job) != kube::Uid(refused) || kube::Generation(*job) != kube::Generation(refused))
    return absl::AbortedError("the job was changed meanwhile");
  reconcile::Observed observed = Observe(*job, *live_.Read(job));
  observed.problems.push_back({"spec.workers.template", Message(why)});
  return executor_.Execute(*job, reconcile::Reconcile(observed), meter);
}

}  // namespace ringmaster::manager

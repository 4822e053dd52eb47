#include "operator/manager/manager.h"

#include <utility>

#include "common/contract.h"
#include "operator/manager/trim.h"

namespace ringmaster::manager {
namespace {

constexpr char kComponent[] = "ringmaster-operator";

controller::Informer::Options Everything(const ManagerOptions& options) {
  controller::Informer::Options made{.ns = options.ns};
  if (options.small_caches) made.trim = TrimJob;
  return made;
}

// Only what the operator has made: a cluster's other pods never enter its memory.
controller::Informer::Options Owned(const ManagerOptions& options, controller::Trim trim) {
  controller::Informer::Options made{.ns = options.ns, .label_selector = contract::kLabelJob};
  if (options.small_caches) made.trim = std::move(trim);
  return made;
}

// Asked for all at once, so that the one that the cluster serves is known when passes begin.
std::vector<GangCache> MakeGangCaches(const ManagerOptions& options, kube::Client& client) {
  std::vector<GangCache> caches;
  for (const reconcile::GangApi* api : options.gang_apis) {
    controller::Informer::Options kept = Owned(options, /*trim=*/{});
    kept.ask_again = options.ask_again_for_gangs;
    caches.push_back({api, std::make_unique<controller::Informer>(client, api->type, kept)});
  }
  return caches;
}

}  // namespace

Manager::Manager(ManagerOptions options, kube::Client& client, WorkerLink& link, const Clock& clock)
    : queue_(clock),
      jobs_(client, kube::kTrainingJob, Everything(options)),
      pods_(client, kube::kPod, Owned(options, TrimPod)),
      services_(client, kube::kService, Owned(options, TrimService)),
      gangs_(MakeGangCaches(options, client)),
      recorder_(client, clock, kComponent),
      made_pods_(pods_, clock),
      executor_(client, link, recorder_, own_writes_, made_pods_, options.parallel_writes),
      reconciler_({.jobs = jobs_, .services = services_, .gangs = gangs_}, link, executor_,
                  own_writes_, made_pods_, clock,
                  {.settings = options.settings,
                   .status_interval = options.status_interval,
                   .on_pass = options.on_pass}),
      controller_({.name = "trainingjob", .workers = options.workers, .observer = options.observer},
                  queue_, reconciler_, clock) {
  jobs_.AddHandler(controller::EnqueueSelf(queue_));
  if (options.on_job) jobs_.AddHandler(options.on_job);
  // Before the handler that brings a pass.
  pods_.AddHandler([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    made_pods_.Seen(after == nullptr ? *before : *after);
  });
  controller_.AddInformer(jobs_);
  Keep(pods_);
  Keep(services_);
  for (const GangCache& cache : gangs_) Keep(*cache.groups);
}

void Manager::Keep(controller::Informer& owned) {
  owned.AddIndex(kOwnerIndex, controller::IndexByOwnerUid());
  owned.AddHandler(controller::EnqueueController(queue_, kube::kTrainingJob));
  controller_.AddInformer(owned);
}

}  // namespace ringmaster::manager

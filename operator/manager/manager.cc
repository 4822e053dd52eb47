#include "operator/manager/manager.h"

#include "common/contract.h"

namespace ringmaster::manager {
namespace {

constexpr char kComponent[] = "ringmaster-operator";

controller::Informer::Options Everything(const ManagerOptions& options) {
  return {.ns = options.ns};
}

// Only what the operator has made: a cluster's other pods never enter its memory.
controller::Informer::Options Owned(const ManagerOptions& options) {
  return {.ns = options.ns, .label_selector = contract::kLabelJob};
}

// Asked for all at once, so that the one that the cluster serves is known when passes begin.
std::vector<GangCache> MakeGangCaches(const ManagerOptions& options, kube::Client& client) {
  std::vector<GangCache> caches;
  for (const reconcile::GangApi* api : options.gang_apis) {
    controller::Informer::Options kept = Owned(options);
    kept.ask_again = options.ask_again_for_gangs;
    caches.push_back({api, std::make_unique<controller::Informer>(client, api->type, kept)});
  }
  return caches;
}

}  // namespace

Manager::Manager(ManagerOptions options, kube::Client& client, WorkerLink& link, const Clock& clock)
    : queue_(clock),
      jobs_(client, kube::kTrainingJob, Everything(options)),
      pods_(client, kube::kPod, Owned(options)),
      services_(client, kube::kService, Owned(options)),
      gangs_(MakeGangCaches(options, client)),
      recorder_(client, clock, kComponent),
      executor_(client, link, recorder_, own_writes_, options.parallel_writes),
      reconciler_({.jobs = jobs_, .pods = pods_, .services = services_, .gangs = gangs_}, link,
                  executor_, own_writes_, clock, options.settings),
      controller_({.name = "trainingjob", .workers = options.workers, .observer = options.observer},
                  queue_, reconciler_, clock) {
  jobs_.AddHandler(controller::EnqueueSelf(queue_));
  if (options.on_job) jobs_.AddHandler(options.on_job);
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

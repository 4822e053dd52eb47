#include "operator/manager/manager.h"

#include <utility>

#include "common/contract.h"
#include "operator/manager/trim.h"

namespace ringmaster::manager {
namespace {

constexpr char kComponent[] = "ringmaster-operator";

controller::Trim IfSmall(const ManagerOptions& options, controller::Trim trim) {
  return options.small_caches ? std::move(trim) : controller::Trim();
}

controller::Informer::Options Everything(const ManagerOptions& options) {
  return {.ns = options.ns, .trim = IfSmall(options, TrimJob)};
}

// Only what the operator has made: a cluster's other pods never enter its memory.
controller::Informer::Options Owned(const ManagerOptions& options, const Clock& clock,
                                    controller::Trim trim) {
  return {.ns = options.ns,
          .label_selector = contract::kLabelJob,
          .clock = &clock,
          .trim = IfSmall(options, std::move(trim))};
}

// Asked for all at once, so that the one that the cluster serves is known when passes begin.
std::vector<GangCache> MakeGangCaches(const ManagerOptions& options, kube::Client& client,
                                      const Clock& clock) {
  std::vector<GangCache> caches;
  for (const reconcile::GangApi* api : options.gang_apis) {
    controller::Informer::Options kept = Owned(options, clock, /*trim=*/{});
    kept.ask_again = options.ask_again_for_gangs;
    caches.push_back({api, std::make_unique<controller::Informer>(client, api->type, kept)});
  }
  return caches;
}

}  // namespace

Manager::Manager(ManagerOptions options, kube::Client& client, WorkerLink& link, const Clock& clock)
    : queue_(clock),
      jobs_(client, kube::kTrainingJob, Everything(options)),
      pods_(client, kube::kPod, Owned(options, clock, TrimPod)),
      services_(client, kube::kService, Owned(options, clock, TrimService)),
      gangs_(MakeGangCaches(options, client, clock)),
      recorder_(client, clock, kComponent),
      own_writes_(IfSmall(options, TrimJob)),
      made_pods_(pods_, clock, IfSmall(options, TrimPod)),
      executor_(client, link, recorder_, own_writes_, made_pods_, options.parallel_writes),
      reconciler_({.jobs = jobs_, .services = services_, .gangs = gangs_}, link, executor_,
                  own_writes_, made_pods_, clock,
                  {.settings = options.settings,
                   .status_interval = options.status_interval,
                   .on_pass = options.on_pass,
                   .confirm = options.confirm}),
      controller_({.name = "trainingjob", .workers = options.workers, .observer = options.observer},
                  queue_, reconciler_, clock) {
  jobs_.AddHandler(controller::EnqueueSelf(queue_));
  if (options.on_job) jobs_.AddHandler(options.on_job);
  // Before the handler that brings a pass.
  pods_.AddHandler([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    made_pods_.Seen(after == nullptr ? *before : *after);
  });
  controller_.AddInformer(jobs_);
  Keep(pods_, options.gather);
  Keep(services_, {});
  for (const GangCache& cache : gangs_) Keep(*cache.groups, {});
}

void Manager::Keep(controller::Informer& owned, Duration gather) {
  owned.AddIndex(kOwnerIndex, controller::IndexByOwnerUid());
  owned.AddHandler(controller::EnqueueController(queue_, kube::kTrainingJob, gather));
  controller_.AddInformer(owned);
}

}  // namespace ringmaster::manager

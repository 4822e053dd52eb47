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

}  // namespace

Manager::Manager(ManagerOptions options, kube::Client& client, WorkerLink& link, const Clock& clock)
    : queue_(clock),
      jobs_(client, kube::kTrainingJob, Everything(options)),
      pods_(client, kube::kPod, Owned(options)),
      services_(client, kube::kService, Owned(options)),
      recorder_(client, clock, kComponent),
      executor_(client, link, recorder_, own_writes_, options.parallel_writes),
      reconciler_({.jobs = jobs_, .pods = pods_, .services = services_}, link, executor_,
                  own_writes_, clock, options.settings),
      controller_({.name = "trainingjob", .workers = options.workers, .observer = options.observer},
                  queue_, reconciler_, clock) {
  jobs_.AddHandler(controller::EnqueueSelf(queue_));
  if (options.on_job) jobs_.AddHandler(options.on_job);
  for (controller::Informer* owned : {&pods_, &services_}) {
    owned->AddIndex(kOwnerIndex, controller::IndexByOwnerUid());
    owned->AddHandler(controller::EnqueueController(queue_, kube::kTrainingJob));
  }
  for (controller::Informer* informer : {&jobs_, &pods_, &services_}) {
    controller_.AddInformer(*informer);
  }
}

}  // namespace ringmaster::manager

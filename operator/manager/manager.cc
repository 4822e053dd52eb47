#include "operator/manager/manager.h"

#include <utility>

#include "common/contract.h"
#include "operator/manager/trim.h"

namespace ringmaster::manager {
namespace {

constexpr char kComponent[] = "ringmaster-operator";
constexpr int kGatherInRush = 20;

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

// Where events are recorded beside the passes.
std::unique_ptr<controller::EventQueue> MakeEventQueue(const ManagerOptions& options,
                                                       controller::EventRecorder& recorder,
                                                       const Clock& clock, const Rush& rush) {
  if (!options.events_beside) return nullptr;
  return std::make_unique<controller::EventQueue>(
      recorder, clock,
      controller::EventQueue::Options{.yields = [&rush] { return rush.IsOn(); },
                                      .patience = kLongestRush,
                                      .observer = options.on_event});
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
      rush_(clock),
      recorder_(client, clock, kComponent),
      events_(MakeEventQueue(options, recorder_, clock, rush_)),
      own_writes_(IfSmall(options, TrimJob)),
      made_pods_(pods_, clock, IfSmall(options, TrimPod)),
      executor_(client, link, Events(), own_writes_, made_pods_, rush_, options.parallel_writes),
      reconciler_({.jobs = jobs_, .services = services_, .gangs = gangs_}, link, executor_,
                  own_writes_, made_pods_, rush_, clock,
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
    if (after != nullptr) reconciler_.Saw(after);
    if (before != nullptr) rush_.NoteChange();  // what is new may be a whole list
  });
  controller_.AddInformer(jobs_);
  Keep(pods_,
       [this, gather = options.gather] { return rush_.IsOn() ? kGatherInRush * gather : gather; });
  Keep(services_, {});
  for (const GangCache& cache : gangs_) Keep(*cache.groups, {});
}

void Manager::Stop() {
  controller_.Stop();
}

void Manager::WriteEvents() {
  if (events_ != nullptr) events_->Stop();
}

controller::EventSink& Manager::Events() {
  if (events_ != nullptr) return *events_;
  return recorder_;
}

void Manager::Keep(controller::Informer& owned, controller::Gather gather) {
  owned.AddIndex(kOwnerIndex, controller::IndexByOwnerUid());
  owned.AddHandler(controller::EnqueueController(queue_, kube::kTrainingJob, std::move(gather)));
  controller_.AddInformer(owned);
}

}  // namespace ringmaster::manager

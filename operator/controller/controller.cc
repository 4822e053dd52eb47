#include "operator/controller/controller.h"

#include <exception>

#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"

namespace ringmaster::controller {

Controller::Controller(Options options, WorkQueue& queue, Reconciler& reconciler,
                       const Clock& clock)
    : options_(std::move(options)), queue_(queue), reconciler_(reconciler), clock_(clock) {}

Controller::~Controller() {
  Stop();
}

void Controller::AddInformer(Informer& informer) {
  informers_.push_back(&informer);
}

absl::Status Controller::Start() {
  for (Informer* informer : informers_) informer->Start();
  for (Informer* informer : informers_) {
    if (absl::Status status = informer->WaitForSync(options_.sync_timeout); !status.ok()) {
      Stop();
      return status;
    }
  }
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { Work(); });
  return absl::OkStatus();
}

void Controller::Stop() {
  for (Informer* informer : informers_) informer->Stop();
  queue_.ShutDown();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Controller::Work() {
  while (const auto key = queue_.Get()) Process(*key);
}

bool Controller::ProcessNext() {
  const auto key = queue_.TryGet();
  if (key) Process(*key);
  return key.has_value();
}

absl::StatusOr<int> Controller::RunUntilIdle(int max_passes) {
  int passes = 0;
  while (true) {
    int changes = 0;
    for (Informer* informer : informers_) {
      RM_ASSIGN_OR_RETURN(const int taken, informer->Pump());
      changes += taken;
    }
    // The informers are pumped again after each pass, so that a pass sees what the one before it
    // did.
    if (ProcessNext()) {
      if (++passes >= max_passes)
        return absl::ResourceExhaustedError("the control loop does not come to rest");
    } else if (changes == 0) {
      return passes;
    }
  }
}

void Controller::Process(const ObjectKey& key) {
  const SteadyTime start = clock_.SteadyNow();
  const ReconcileResult result = RunPass(key);
  Settle(key, result);
  queue_.Done(key);
  if (options_.observer == nullptr) return;
  const auto latency = std::chrono::duration_cast<Duration>(clock_.SteadyNow() - start);
  options_.observer->OnReconcile(ResultLabel(result), latency);
  options_.observer->OnQueueDepth(queue_.Depth());
}

ReconcileResult Controller::RunPass(const ObjectKey& key) {
  try {
    return reconciler_.Reconcile(key);
  } catch (const std::exception& error) {
    return Retry{absl::InternalError(std::string("the reconcile pass threw: ") + error.what())};
  } catch (...) {
    return Retry{absl::InternalError("the reconcile pass threw something that is no exception")};
  }
}

void Controller::Settle(const ObjectKey& key, const ReconcileResult& result) {
  if (const auto* retry = std::get_if<Retry>(&result)) {
    queue_.AddRateLimited(key);
    if (kube::IsConflict(retry->status)) {
      log::Debug("reconcile met a conflict",
                 {{"controller", options_.name}, {"key", key.ToString()}});
    } else {
      log::Warning(
          "reconcile failed, will retry",
          {{"controller", options_.name}, {"key", key.ToString()}, {"error", retry->status}});
    }
    return;
  }
  queue_.Forget(key);
  if (const auto* later = std::get_if<RequeueAfter>(&result)) {
    queue_.AddAfter(key, later->delay);
  } else if (const auto* terminal = std::get_if<Terminal>(&result)) {
    log::Error(
        "reconcile failed for good",
        {{"controller", options_.name}, {"key", key.ToString()}, {"error", terminal->status}});
  }
}

}  // namespace ringmaster::controller

// The control loop: takes keys from a queue, has them reconciled, and acts on the answer.
//
//   WorkQueue queue(SystemClock());
//   Informer jobs(client, kube::kTrainingJob, {});
//   jobs.AddHandler(EnqueueSelf(queue));
//   Controller controller({.name = "trainingjob"}, queue, reconciler, SystemClock());
//   controller.AddInformer(jobs);
//   RM_RETURN_IF_ERROR(controller.Start());   // returns once the informers have synced and workers
//   run
//   ...
//   controller.Stop();
//
// A test drives the same loop without threads: RunUntilIdle pumps the informers and runs every pass
// that is due by the (fake) clock; after Advance it is called again. Start and stepping exclude one
// another.
//
// Thread safety: Stop may be called from any thread; the rest from one. The queue may be added to
// from any thread.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_CONTROLLER_H_
#define RINGMASTER_OPERATOR_CONTROLLER_CONTROLLER_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/controller/informer.h"
#include "operator/controller/reconciler.h"
#include "operator/controller/work_queue.h"

namespace ringmaster::controller {

// What the loop tells of itself; the program connects it to metrics. Called from the workers, so
// implementations are thread-safe and quick.
class ControllerObserver {
 public:
  virtual ~ControllerObserver() = default;
  // A pass has ended; `result` is from ResultLabel's closed set.
  virtual void OnReconcile(std::string_view result, Duration latency) = 0;
  // Keys that wait, after each pass.
  virtual void OnQueueDepth(std::size_t depth) = 0;
};

class Controller {
 public:
  struct Options {
    std::string name;  // in logs
    int workers = 2;
    std::chrono::milliseconds sync_timeout = std::chrono::minutes(2);
    ControllerObserver* observer = nullptr;  // may be null; must outlive the controller
  };

  // All references must outlive the controller.
  Controller(Options options, WorkQueue& queue, Reconciler& reconciler, const Clock& clock);
  ~Controller();  // Stop
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Informers that Start starts, waits for, and Stop stops, and that RunUntilIdle pumps.
  void AddInformer(Informer& informer);

  // Starts the informers, waits until all have synced, then starts the workers. On an error
  // everything is stopped.
  absl::Status Start();
  // Ends after the passes that run now; the queue is shut down. Idempotent.
  void Stop();

  // Runs one pass if a key is ready. False when none is.
  bool ProcessNext();

  // Pumps the informers and runs passes in turn until neither has anything left; returns the number
  // of passes. A fake clock decides what is due. kResourceExhausted after `max_passes`: the loop
  // feeds itself. An informer's error ends it; call again to retry.
  absl::StatusOr<int> RunUntilIdle(int max_passes = 1000);

 private:
  ReconcileResult RunPass(const ObjectKey& key);
  void Settle(const ObjectKey& key, const ReconcileResult& result);
  void Process(const ObjectKey& key);
  void Work();

  const Options options_;
  WorkQueue& queue_;
  Reconciler& reconciler_;
  const Clock& clock_;
  std::vector<Informer*> informers_;
  std::vector<std::thread> workers_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_CONTROLLER_H_

// A job's workers as threads of one test, with an operator that does what the real one does for
// them: announces rounds, and makes a checkpoint exist once every member has reported its part.
//
//   Cluster cluster(DigitsJob(workspace));
//   cluster.Start(4);
//   cluster.Announce();
//   const Finished finished = cluster.WaitUntilFinished();
//
// Workers talk over real sockets and write real files. Used by one thread; every wait has a
// deadline, and a wait that passes it throws std::runtime_error with what all workers said last.
#ifndef RINGMASTER_RUNTIME_TRAIN_TESTING_CLUSTER_H_
#define RINGMASTER_RUNTIME_TRAIN_TESTING_CLUSTER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/metrics.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/train/ending.h"
#include "runtime/train/inbox.h"
#include "runtime/train/options.h"

namespace ringmaster::train::testing {

class Cluster {
 public:
  struct Said {
    int64_t round = 0;
    Event event;
  };

  Cluster(training::v1alpha1::WorkerConfig config, SessionOptions options);
  // Closes every worker's channel and joins its thread.
  ~Cluster();

  // Adds workers until there are `count`; returns without waiting for them.
  void Start(int count);
  // Ends a worker as a lost launcher does. Its place stays empty until Start.
  void Kill(int worker);
  // Ends the last workers, so that the next round has `count`.
  void Shrink(int count);

  // Waits until all workers are ready, then announces the next round to all.
  void Announce();
  // Holds a worker at a step boundary: it commits `step`, and then stands still until Resume or
  // Kill. Call it before Announce. WaitUntilPaused waits for it to stand.
  void PauseAt(int worker, int64_t step);
  void WaitUntilPaused();
  void Resume();
  // PauseAt, Announce and WaitUntilPaused.
  void RunTo(int worker, int64_t step);

  // A command to one worker or to all.
  void Tell(int worker, const Command& command);
  void TellAll(const Command& command);

  // What a worker said, so far.
  std::vector<Said> Events(int worker) const;
  template <typename E>
  std::vector<E> EventsOf(int worker) const {
    std::vector<E> found;
    for (const Said& said : Events(worker)) {
      if (const E* event = std::get_if<E>(&said.event)) found.push_back(*event);
    }
    return found;
  }

  // Until `done` holds; it is asked after each event.
  void WaitUntil(const std::string& what, const std::function<bool()>& done);
  void WaitForStep(int worker, int64_t step);
  // How a worker has ended; nothing while it runs.
  std::optional<Ending> EndingOf(int worker) const;
  // Until all workers have ended; how each did.
  std::vector<Ending> WaitForEndings();
  // The same, for a run that must finish alike on all: what they reported.
  Finished WaitUntilFinished();

  std::vector<checkpoint::CheckpointRef> checkpoints() const;  // newest first
  void WaitForCheckpoint(int64_t step);
  std::string MetricsOf(int worker) const;
  // Whether parts that are on disk make a checkpoint.
  bool commits = true;
  // Changes what a worker is started with.
  std::function<void(int worker, SessionOptions& options)> adjust;

 private:
  class Worker;

  void Heard(int worker, const Said& said);
  void StandStill(std::unique_lock<std::mutex>& lock, int worker, const Event& event);
  std::vector<std::pair<int, CheckpointCommitted>> CommitWhole(int64_t round, int64_t step);
  std::string Describe() const;

  const training::v1alpha1::WorkerConfig config_;
  const SessionOptions options_;
  int incarnations_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. Only the test's own thread changes `workers_`, so it reads it without.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<Said>> events_;       // by worker, of its present incarnation
  std::vector<std::optional<Ending>> endings_;  // by worker
  int64_t round_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::map<int, std::string>> durable_;  // by round and step
  std::vector<checkpoint::CheckpointRef> checkpoints_;
  int pause_worker_ = -1;  // -1: nobody
  int64_t pause_step_ = 0;
  bool paused_ = false;
};

// What so many workers end with when nothing happens to them.
Finished TrainUndisturbed(const training::v1alpha1::WorkerConfig& config,
                          const SessionOptions& options, int workers = 1);
// The same when they write a checkpoint every four steps, and the second is lost after step 9, when
// that of step 8 exists, and replaced.
Finished TrainWithALoss(training::v1alpha1::WorkerConfig config, const SessionOptions& options,
                        int workers);

}  // namespace ringmaster::train::testing

#endif  // RINGMASTER_RUNTIME_TRAIN_TESTING_CLUSTER_H_

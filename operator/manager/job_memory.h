// What a process remembers of jobs from one pass to the next. Nothing of it is needed to go on: a
// process that has forgotten it, or never knew, tries again and finds out.
//
// What was refused is told in the status. Its words may be others each time (a webhook puts the
// number of the request into them, a quota how much of it is used), and a status that is written
// brings the next pass, which is refused in other words: a loop as quick as the API server. So a
// refusal that has been told stands for a while before another takes its place, and for twice as
// long each time that happens, up to a maximum. What else brings passes (a job's other pods, its
// workers' progress, twice a second) must not try again each time either: what is to be created
// has a pause after a refusal, and so has the status.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_JOB_MEMORY_H_
#define RINGMASTER_OPERATOR_MANAGER_JOB_MEMORY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/clock.h"
#include "operator/controller/work_queue.h"
#include "operator/kube/types.h"
#include "operator/reconcile/observed.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::manager {

class JobMemory {
 public:
  // `stands` is how long a refusal stands. `clock` must outlive the memory.
  explicit JobMemory(const Clock& clock, controller::Backoff stands = {std::chrono::seconds(1),
                                                                       std::chrono::minutes(1)});

  // Takes the job up, and forgets one that had its name before. Whether there was one.
  bool Meet(const kube::ObjectKey& key, const std::string& uid);
  void Forget(const kube::ObjectKey& key);

  // Whether a decision for the job has been carried out, to its end or to a refusal.
  bool Tried(const kube::ObjectKey& key) const;
  // How long no status is to be written: the last one was refused a moment ago.
  Duration StatusHeld(const kube::ObjectKey& key) const;
  // How long nothing is to be created: something was refused a moment ago, of the job as it is in
  // this generation.
  Duration CreationHeld(const kube::ObjectKey& key, std::int64_t generation) const;
  // What is to be told of the last one; nothing where all of it was taken. From the first time that
  // it is given out it stands.
  std::optional<reconcile::Refusal> Tell(const kube::ObjectKey& key);

  // Only of a job that was met. What came of the decision that was carried out:
  // Nothing is to be created for a while, and for twice as long after each further try, until all
  // was taken.
  void NoteRefused(const kube::ObjectKey& key, std::int64_t generation,
                   const reconcile::Refusal& refusal);
  // No more than that something was tried: what was refused is not.
  void NoteTried(const kube::ObjectKey& key);
  // Whether there was a refusal to be told, which is gone now.
  bool NoteTaken(const kube::ObjectKey& key);
  // The status itself was refused: no other is to be written for a while, and for twice as long
  // each time, until one is taken.
  void NoteStatusRefused(const kube::ObjectKey& key);
  // `stored`: or it failed for something that passes.
  void NoteStatusTaken(const kube::ObjectKey& key, bool stored = true);

  // The job's first status, which was decided and acted upon but is to be stored later
  // (status_pace.h); nothing once one was stored. Only of a job that was met.
  void KeepFirstStatus(const kube::ObjectKey& key, training::v1alpha1::TrainingJobStatus status);
  std::optional<training::v1alpha1::TrainingJobStatus> FirstStatus(
      const kube::ObjectKey& key) const;

 private:
  struct Held {
    Duration pause{};
    SteadyTime until{};
  };
  struct Told {
    reconcile::Refusal refusal;
    Held creation;
    std::int64_t generation = 0;
    Duration stands;
    std::optional<SteadyTime> until;  // nothing before it was given out
  };
  struct Job {
    std::string uid;
    bool tried = false;
    std::unique_ptr<Told> told;  // seldom there, as are the next, and there may be many jobs
    std::unique_ptr<Held> held;
    std::unique_ptr<training::v1alpha1::TrainingJobStatus> first_status;
  };

  void HoldLonger(Held& held) const;
  Duration LeftOf(const Held& held) const;

  const Clock& clock_;
  const controller::Backoff stands_;
  mutable std::mutex mutex_;
  std::unordered_map<kube::ObjectKey, Job> jobs_;  // guarded by mutex_
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_JOB_MEMORY_H_

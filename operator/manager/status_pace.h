// When a status that says nothing new is written.
//
// While a job's pods start one after another, each changes a count and a sentence of the status,
// and a write of a status costs the API server as much as three pods. So a decision that changes
// nothing but counts, words, and whether all pods run by now, waits for its turn and is then made
// anew: an interval after the job's last write at least, and so long that all jobs' counts together
// take a fifth of one connection's time, but no longer than makes four of them in an interval, and
// for sixty intervals at most. In a rush (rush.h) no turn comes, for thirty intervals at most.
// Where pods run, the round that their workers form is told soon, and at once. Everything else is
// carried out at once: any other condition that turns or has another reason, a round, an incident,
// whatever is to be created, deleted or recorded. What a decision that waits has to tell workers is
// told meanwhile: it speaks of what is stored.
//
// A job's first status says that its pods are asked for, and is stored before them. In a rush of
// other jobs they come first, and it takes its turn as counts do.
//
// What it remembers are times of writes; a process that has forgotten them writes at once.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_STATUS_PACE_H_
#define RINGMASTER_OPERATOR_MANAGER_STATUS_PACE_H_

#include <mutex>
#include <optional>
#include <unordered_map>

#include "common/clock.h"
#include "operator/kube/types.h"
#include "operator/manager/rush.h"
#include "operator/reconcile/decision.h"

namespace ringmaster::manager {

// Whether the statuses differ in no more than counts, words, and whether all pods run or are still
// starting.
bool MayBeToldLater(const training::v1alpha1::TrainingJobStatus& before,
                    const training::v1alpha1::TrainingJobStatus& after);

class StatusPace {
 public:
  // An interval of zero writes everything at once. The references must outlive the pace.
  StatusPace(Duration interval, const Clock& clock, const Rush& rush)
      : interval_(interval), clock_(clock), rush_(rush) {}

  // How long the decision, which was made for a job with status `before`, is to wait; 0 when it is
  // to be carried out, which is then taken as done. `stored` is whether `before` was, or is a first
  // status that has waited so far.
  Duration WaitFor(const kube::ObjectKey& job,
                   const std::optional<training::v1alpha1::TrainingJobStatus>& before,
                   const reconcile::Decision& decision, bool stored = true);
  void Forget(const kube::ObjectKey& job);

  // Whether the first status of this decision's job is to follow the pods that it creates.
  bool PodsFirst(const reconcile::Decision& decision) const;

  // How long the API server has taken for a write of a status.
  void Took(Duration call);

 private:
  struct Job {
    SteadyTime written;
    std::optional<SteadyTime> waits;  // since when
    std::optional<SteadyTime> turn;   // of what waits
  };

  // Both need mutex_.
  Duration WaitOf(Job& job, SteadyTime now);
  SteadyTime TakeTurn(SteadyTime written, SteadyTime now);

  const Duration interval_;
  const Clock& clock_;
  const Rush& rush_;
  std::mutex mutex_;
  Duration last_call_{};  // guarded by mutex_, as are the next
  SteadyTime free_{};     // from when on no turn is taken
  std::unordered_map<kube::ObjectKey, Job> jobs_;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_STATUS_PACE_H_

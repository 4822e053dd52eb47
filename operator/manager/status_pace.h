// When a status that says nothing new is written.
//
// While a job's pods start one after another, each changes a count and a sentence of the status,
// and a write of a status costs the API server as much as three pods. So a decision that changes
// nothing but counts, words, and whether all pods run by now, waits for its turn and is then made
// anew: an interval after the job's last write at least, and so long that all jobs' counts together
// take a tenth of the time, but no longer than makes four of them in an interval, and for sixty
// intervals at most. While pods are being created (rush.h) no turn comes, for ten seconds at most.
// Where pods run, the round that their workers form is told soon, and at once. Everything else is
// carried out at once: any other condition that turns or has another reason, a round, an incident,
// whatever is to be created, deleted, sent or recorded.
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
  // to be carried out, which is then taken as done.
  Duration WaitFor(const kube::ObjectKey& job,
                   const std::optional<training::v1alpha1::TrainingJobStatus>& before,
                   const reconcile::Decision& decision);
  void Forget(const kube::ObjectKey& job);

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

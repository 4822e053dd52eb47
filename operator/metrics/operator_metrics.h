// The operator's Prometheus metrics, all in one place.
//
//   ringmaster_operator_reconcile_total{result}            passes, by what they answered
//   ringmaster_operator_reconcile_seconds{result}          their latencies
//   ringmaster_operator_reconcile_own_seconds{calls}       processor time of a pass on its thread,
//                                                          by whether it made API calls: "some",
//                                                          "none"
//   ringmaster_operator_queue_depth                        jobs that wait for a pass
//   ringmaster_operator_events_total{outcome}              Kubernetes events: "recorded", "failed",
//                                                          "dropped"
//   ringmaster_operator_jobs{state}                        jobs by state
//   ringmaster_operator_oldest_state_timestamp_seconds{state}
//                                                          since when the job longest in it is
//                                                          there
//   ringmaster_operator_rounds_total                       rounds that were formed
//   ringmaster_operator_restarts_total{cause}              incidents that lost a worker, by cause
//   ringmaster_operator_checkpoints_total                  checkpoints that came into being
//
// Labels are from closed sets; no job's name is one. Rounds, restarts and checkpoints are counted
// from status, from when this process began to watch, so that a restarted operator does not count
// them twice. Jobs whose managedBy names another controller count nowhere.
#ifndef RINGMASTER_OPERATOR_METRICS_OPERATOR_METRICS_H_
#define RINGMASTER_OPERATOR_METRICS_OPERATOR_METRICS_H_

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/metrics.h"
#include "operator/controller/controller.h"
#include "operator/kube/types.h"

namespace ringmaster::operator_metrics {

// Thread-safe. Lives as long as what it observes.
class OperatorMetrics : public controller::ControllerObserver {
 public:
  explicit OperatorMetrics(metrics::Registry& registry);

  void OnReconcile(std::string_view result, Duration latency) override;
  void OnQueueDepth(std::size_t depth) override;

  // A pass of a job has ended; its time without API calls.
  void OnPass(Duration own, bool called);

  // What came of an event, as controller/event_queue.h says it.
  void OnEvent(std::string_view outcome);

  // A change of a job; a handler of the jobs' informer. Either may be null.
  void OnJob(const kube::ObjectPtr& was, const kube::ObjectPtr& is);

 private:
  struct Passes {
    metrics::Counter* total;
    metrics::Histogram* seconds;
  };
  struct State {
    metrics::Gauge* count;
    metrics::Gauge* oldest;
    std::multiset<Time> since;  // of each job in it; guarded by mutex_
  };

  void CountStates(const kube::ObjectPtr& before, const kube::ObjectPtr& after);

  std::map<std::string, Passes, std::less<>> passes_;               // by result
  std::map<std::string, metrics::Counter*, std::less<>> restarts_;  // by cause
  std::map<std::string, metrics::Counter*, std::less<>> events_;    // by outcome
  metrics::Histogram& own_with_calls_;
  metrics::Histogram& own_without_calls_;
  metrics::Gauge& queue_depth_;
  metrics::Counter& rounds_;
  metrics::Counter& checkpoints_;

  std::mutex mutex_;
  std::map<std::string, State, std::less<>> states_;
};

}  // namespace ringmaster::operator_metrics

#endif  // RINGMASTER_OPERATOR_METRICS_OPERATOR_METRICS_H_

// The operator on a cluster: the counterpart of local/local_cluster.h, with an API server's client
// in place of the store and the kubelets in place of the node agent.
//
// It begins as a standby: it looks whether the cluster has what it needs (preflight.h), opens the
// rendezvous, which tells workers where the leader is, and stands for election. When it leads it
// takes workers in and reconciles. When it has led and does not any more, or when somebody has put
// another version of the CustomResourceDefinition in place of its own, it has ended: the process
// should exit, and be started anew.
//
//   RM_ASSIGN_OR_RETURN(auto op, ClusterOperator::Start(options, {client, client, client}, clock));
//   while (!op->Ended() && !asked_to_stop) Wait();
//   op->Stop();
//
// Thread safety: Ended and the readers from any thread, Stop from one.
#ifndef RINGMASTER_OPERATOR_CLUSTER_CLUSTER_OPERATOR_H_
#define RINGMASTER_OPERATOR_CLUSTER_CLUSTER_OPERATOR_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/web_server.h"
#include "operator/controller/leader_election.h"
#include "operator/controller/streak.h"
#include "operator/kube/client.h"
#include "operator/kube/token_reviewer.h"
#include "operator/manager/manager.h"
#include "operator/metrics/operator_metrics.h"
#include "operator/reconcile/settings.h"
#include "operator/rendezvous/pod_verifier.h"
#include "operator/rendezvous/server.h"

namespace ringmaster::cluster {

struct ClusterOptions {
  // Whose jobs are run; empty for those of all namespaces.
  std::string ns;
  // Where the lease and the Secret of the operators lie.
  std::string own_ns;
  // Of the lease; the Secret is "<name>-rendezvous".
  std::string name = "ringmaster-operator";
  // This operator, among those of the same name: its pod's name.
  std::string pod = "operator";
  // The address at which workers and other operators reach this process, without a port.
  std::string host;
  // Off: this one leads at once. Only where there is no other.
  bool leader_elect = true;
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);

  // Where the rendezvous listens (rendezvous/server.h).
  std::string rendezvous_address = ":7471";
  // What workers dial: "host:port[,host:port]", a Service before all operators, say. This operator
  // alone where empty.
  std::string rendezvous_endpoint;
  // Where /metrics, /healthz and /readyz are served; nowhere if empty.
  std::string metrics_address;
  // Another place for /healthz and /readyz; none if empty.
  std::string health_address;

  // Which gang scheduler's pod groups are made: "native", "volcano", "coscheduling"; "auto", the
  // first of these that the cluster serves and the account has the rights for; "none".
  std::string gang = "auto";

  // Images and times; what the rendezvous decides is filled in.
  reconcile::Settings settings;
  int concurrent_jobs = 8;   // reconciled at once
  int parallel_writes = 16;  // API calls in flight for one job
  // The least time between two writes of one job's status that change no more than counts and
  // words in it.
  Duration status_interval = std::chrono::seconds(1);
  // How long a pass waits for more changes of its job's pods.
  Duration gather = std::chrono::milliseconds(50);
  // How often it looks whether the CustomResourceDefinition is still its own.
  Duration look_at_definition = std::chrono::seconds(10);
  // It has gone only when several looks in a row, over at least this time, do not find it: an API
  // server that is just starting may not find it either.
  Duration definition_gone_after = std::chrono::seconds(5);
};

class ClusterOperator {
 public:
  struct Clients {
    kube::Client& work;
    kube::Client& election;  // with a short time-out: at most half of the renew deadline
    kube::TokenReviewer& reviewer;
  };

  // Opens the endpoints and begins. Everything that needs the API server goes on behind, and is
  // tried again until it answers. `clients` and `clock` must outlive the operator. kUnavailable
  // when an endpoint's port is taken, kInvalidArgument for times that do not fit, a gang scheduler
  // that is none, and where neither host nor rendezvous_endpoint is given.
  static absl::StatusOr<std::unique_ptr<ClusterOperator>> Start(ClusterOptions options,
                                                                Clients clients,
                                                                const Clock& clock);
  ~ClusterOperator();  // Stop

  // Why it cannot go on, by itself: kAborted when leadership was lost, in which case workers are
  // refused from then on; kFailedPrecondition or kPermissionDenied when the cluster lacks
  // something, or has another definition than at the start. Nothing while it is at work. To be
  // asked several times a second: a leader whose call to the API server hangs learns only here that
  // its time is up.
  std::optional<absl::Status> Ended();

  // Ends in order: the passes that run, then the workers' streams, then the lease, so that another
  // operator takes over at once; the events that wait are written after that, for some seconds at
  // most. Waits for calls in flight. Idempotent.
  void Stop();

  bool leads() const { return leads_; }
  int rendezvous_port() const { return rendezvous_port_; }  // 0 until it listens
  int metrics_port() const { return web_ == nullptr ? 0 : web_->port(); }

 private:
  ClusterOperator(ClusterOptions options, Clients clients, const Clock& clock);

  controller::LeaderElectionOptions ElectionOptions() const;
  std::string SecretName() const;
  std::string OwnRendezvous() const;  // "" where the host is not known
  manager::ManagerOptions MakeManagerOptions();

  absl::Status OpenEndpoints();
  absl::Status CheckReady();

  // The runner's thread: Run, in this order.
  void Run();
  absl::Status CheckCluster();
  absl::Status CheckGangs();
  absl::Status OpenRendezvous();
  void StandForElection();
  bool FollowElection();  // false when there is nothing to wait for any more
  void Lead();
  void LookAtDefinition();
  // kNotFound, which is of the definition, becomes kFailedPrecondition when it is to be believed,
  // kUnavailable until then. Other statuses stay.
  absl::Status BelieveGone(const absl::Status& found);
  // Whether an object that cannot be read is its writer's fault, and not that of a definition that
  // has changed since the last look. From any thread.
  absl::Status ConfirmDefinition();
  // Repeats an attempt while the API server may only be away. False when it ended otherwise.
  bool Try(const std::string& what, const std::function<absl::Status()>& attempt);

  void WaitFor(const std::string& what);
  void End(const absl::Status& why);
  bool Pause(Duration duration);  // false when it has ended, by Stop or by itself

  const ClusterOptions options_;
  const Clients clients_;
  const Clock& clock_;
  const std::string identity_;
  metrics::Registry registry_;
  operator_metrics::OperatorMetrics metrics_{registry_};
  metrics::Gauge& leading_;

  rendezvous::ObjectPodVerifier verifier_;
  std::unique_ptr<manager::Manager> manager_;
  std::unique_ptr<rendezvous::Server> rendezvous_;  // before manager_ on destruction: its threads
                                                    // call through live_manager_
  std::atomic<manager::Manager*> live_manager_ = nullptr;
  std::string authority_pem_;
  std::vector<const reconcile::GangApi*> gangs_;  // set before Lead
  controller::LeaderElector::Leader told_;        // of the runner's thread, as is what follows
  SteadyTime next_look_{};
  controller::Streak definition_gone_;
  std::atomic<int> rendezvous_port_ = 0;
  std::atomic<bool> leads_ = false;  // with full caches

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;   // guarded by mutex_, as is all below
  bool resigning_ = false;  // ends the election's thread
  std::optional<absl::Status> ended_;
  std::string waits_for_ = "the cluster";               // empty: ready
  std::unique_ptr<controller::LeaderElector> elector_;  // set once

  std::unique_ptr<WebServer> web_;
  std::unique_ptr<WebServer> health_;
  std::thread runner_;
  std::thread election_;
};

}  // namespace ringmaster::cluster

#endif  // RINGMASTER_OPERATOR_CLUSTER_CLUSTER_OPERATOR_H_

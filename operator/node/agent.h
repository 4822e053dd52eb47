// The local node: runs the pods of a client (the memory store of `ringmaster run`) as processes of
// this machine, and reports of them as a kubelet does: phase, addresses, container states, exit
// codes, restarts.
//
// It is a Reconciler over pods: a change of the pod, the end of one of its processes, and a
// deadline each bring the pod's key into the queue, and a pass does what is missing. A pod that a
// former process of this node had started (its status says so, but it is not known here) is Failed
// with reason NodeLost: its processes died with that process.
//
// Pods start when the machine has room for what they request; until then they are Pending,
// PodScheduled=False, reason Unschedulable. Workers whose threads are to be bound are kept apart:
// each is told of cores that no other has.
#ifndef RINGMASTER_OPERATOR_NODE_AGENT_H_
#define RINGMASTER_OPERATOR_NODE_AGENT_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/controller/controller.h"
#include "operator/controller/informer.h"
#include "operator/controller/reconciler.h"
#include "operator/controller/work_queue.h"
#include "operator/kube/client.h"
#include "operator/node/core_pool.h"
#include "operator/node/local_pod.h"
#include "operator/node/loopback.h"
#include "operator/node/process.h"

namespace ringmaster::node {

class NodeAgent : public controller::Reconciler {
 public:
  struct Options {
    std::string name = "local";  // the node's name
    std::string bin_directory;   // where ringmaster-launcher and ringmaster-train lie
    std::string workspace;       // working directory of containers that name none
    std::string run_directory;   // logs/ and volumes/ are made in it
    std::map<std::string, std::string> environment;  // what every process starts from
    std::optional<Resources> capacity;               // the machine's own where absent
    std::optional<std::vector<Core>> cores;          // likewise: which workers may be bound to
  };

  // `client` and `clock` must outlive the agent.
  static absl::StatusOr<std::unique_ptr<NodeAgent>> Create(Options options, kube::Client& client,
                                                           const Clock& clock);

  // Kills every process that it started and waits for their ends.
  ~NodeAgent() override;

  // Starts to run pods; returns once the existing ones are known.
  absl::Status Start();
  // Starts and ends nothing more; what runs goes on until the agent is destroyed.
  void Stop();

  // The node's own address: where a program of the host listens that the pods are to reach.
  std::string host_ip() const { return subnet_.host(); }

  controller::ReconcileResult Reconcile(const kube::ObjectKey& key) override;

 private:
  NodeAgent(Options options, kube::Client& client, const Clock& clock, LoopbackSubnet subnet);

  controller::ReconcileResult Admit(const kube::Json& pod);
  controller::ReconcileResult Advance(const kube::Json& pod, LocalPod& local);
  controller::ReconcileResult End(const kube::Json& pod, LocalPod& local);
  controller::ReconcileResult Settle(const kube::Json& pod, const kube::Json& status,
                                     controller::ReconcileResult otherwise);
  absl::Status WriteStatus(const kube::Json& pod, const kube::Json& status);
  absl::Status Bind(const kube::Json& pod);
  absl::Status Remove(const kube::Json& pod);
  PlanContext ContextFor(const kube::Json& pod, const std::string& ip);
  bool HasRoomFor(const Resources& requests, std::string& why);
  void StartContainer(LocalPod& local, LocalContainer& container);
  void StartDueContainers(LocalPod& local, std::optional<Duration>& next);
  bool AskToStop(const kube::Json& pod, LocalPod& local, Duration& wait);
  void EndOrphans(const kube::ObjectKey& key, const std::string& uid);
  void Forget(const std::string& uid);
  void OnProcessExit(pid_t pid, ProcessExit exit);
  void CollectExits();

  const Options options_;
  kube::Client& client_;
  const Clock& clock_;
  LoopbackSubnet subnet_;
  Resources capacity_;
  controller::WorkQueue queue_;
  controller::Informer pods_;
  std::unique_ptr<controller::Controller> controller_;

  std::mutex mutex_;                       // held for a whole pass
  std::map<std::string, LocalPod> local_;  // by UID; guarded by mutex_
  CorePool cores_;                         // guarded by mutex_

  std::mutex exits_mutex_;                               // taken after mutex_, never before
  std::map<pid_t, std::pair<ProcessExit, Time>> exits_;  // ended, not yet collected by a pass
  std::map<pid_t, kube::ObjectKey> owners_;              // the pod of each process

  std::unique_ptr<ProcessSupervisor> supervisor_;  // last: its thread uses the above
};

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_AGENT_H_

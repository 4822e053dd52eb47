// A cluster of one machine in one process: an object store with an API server's semantics, the
// operator's core, the rendezvous, and a node that runs pods as processes. `ringmaster run` and
// `ringmaster-operator` on a machine without Kubernetes are this.
//
//   RM_ASSIGN_OR_RETURN(auto cluster, LocalCluster::Open({.state_directory = dir, ...},
//   SystemClock())); cluster->store().Create(kube::kTrainingJob, job);
//   RM_RETURN_IF_ERROR(cluster->Start());
//
// What it was doing when it ended, however that came, is in the store's journal: the next one on
// the same directory goes on.
#ifndef RINGMASTER_OPERATOR_LOCAL_LOCAL_CLUSTER_H_
#define RINGMASTER_OPERATOR_LOCAL_LOCAL_CLUSTER_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "operator/kube/client.h"
#include "operator/kube/memory/store.h"
#include "operator/manager/manager.h"
#include "operator/metrics/operator_metrics.h"
#include "operator/node/agent.h"
#include "operator/rendezvous/pod_verifier.h"
#include "operator/rendezvous/server.h"

namespace ringmaster::local {

class LocalCluster {
 public:
  struct Options {
    std::filesystem::path
        state_directory;  // journal, logs, checkpoints; must exist, and be this process's alone
    std::filesystem::path workspace;  // what relative paths of manifests start from
    std::string metrics_address;      // "host:port" of the operator's metrics; none if empty
  };

  // Opens the store; nothing runs yet. `clock` must outlive the cluster.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Open(Options options, const Clock& clock);

  // Kills the processes of all pods and waits for their ends.
  ~LocalCluster();

  // Starts the rendezvous, the operator and the node. Once.
  absl::Status Start();

  kube::memory::MemoryStore& store() { return *store_; }

  // What the workers said; empty before Start.
  reconcile::WorkersView WorkersOf(const kube::ObjectKey& job);

  // Where checkpoints go when a manifest names no place.
  std::filesystem::path checkpoint_directory() const {
    return options_.state_directory / "checkpoints";
  }

  // The port of the metrics endpoint; 0 without one.
  int metrics_port() const { return metrics_server_ == nullptr ? 0 : metrics_server_->port(); }

 private:
  LocalCluster(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  absl::Status StartRendezvous();
  absl::Status StartMetrics();
  reconcile::Settings MakeSettings() const;

  const Options options_;
  const Clock& clock_;
  metrics::Registry registry_;
  operator_metrics::OperatorMetrics metrics_{registry_};
  std::unique_ptr<kube::memory::MemoryStore> store_;
  std::unique_ptr<rendezvous::PodVerifier> verifier_;
  std::atomic<manager::Manager*> enqueue_to_ =
      nullptr;  // workers may dial in before the manager is there
  std::unique_ptr<node::NodeAgent> agent_;
  std::unique_ptr<rendezvous::Server> rendezvous_;
  std::unique_ptr<manager::Manager> manager_;
  std::unique_ptr<metrics::Server> metrics_server_;
};

}  // namespace ringmaster::local

#endif  // RINGMASTER_OPERATOR_LOCAL_LOCAL_CLUSTER_H_

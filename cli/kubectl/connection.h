// The cluster that a command of `kubectl ringmaster` talks to, and its errors in words that say
// what to do.
#ifndef RINGMASTER_CLI_KUBECTL_CONNECTION_H_
#define RINGMASTER_CLI_KUBECTL_CONNECTION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/rest/rest_client.h"

namespace ringmaster::cli::kubectl {

// Who writes the fields of a job, as `kubectl get --show-managed-fields` shows it.
inline constexpr char kFieldManager[] = "kubectl-ringmaster";

// The flags that every command takes.
struct ClusterFlags {
  kube::rest::ConfigSource source;  // --kubeconfig, --context
  std::string ns;                   // empty: the context's
  int request_timeout = 30;         // seconds for any one call
};

struct Cluster {
  std::unique_ptr<kube::rest::RestClient> client;
  std::string ns;
  std::string origin;  // where its address comes from, for messages
};

// Reads the kubeconfig; sends nothing. Errors of rest/config.h and RestClient::Connect.
absl::StatusOr<Cluster> Connect(const ClusterFlags& flags);

// The error of a call as a user can act on it: no such job (and which there are), a cluster without
// TrainingJobs, rights that are missing, a server that does not answer. `job` is the one that was
// named, empty for none. Asks the cluster again. An OK status stays OK.
absl::Status Explain(Cluster& cluster, const absl::Status& status, const std::string& job);

// The job as it is stored. Errors are explained.
absl::StatusOr<kube::Json> GetJob(Cluster& cluster, const std::string& job);

// The job's pods, those that are going too. Errors are explained.
absl::StatusOr<std::vector<kube::ObjectPtr>> PodsOf(Cluster& cluster, const std::string& job);

// Connects, acts, prints what went wrong to standard error. Returns the exit code.
int WithCluster(const ClusterFlags& flags, const std::function<absl::Status(Cluster&)>& act);

// "digits" of what a user may write for a job: "digits", "tj/digits", "trainingjobs/digits",
// "trainingjob.training.ringmaster.dev/digits" (-o name prints that). Other text as it is.
std::string JobName(const std::string& argument);

// "trainingjob.training.ringmaster.dev/digits"
std::string QualifiedName(const std::string& job);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_CONNECTION_H_

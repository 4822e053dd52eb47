#include "cli/kubectl/connection.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "common/contract.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/reconcile/names.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::rest::RestClient;

constexpr char kQualifier[] = "trainingjob.training.ringmaster.dev";
constexpr int kMostNames = 10;

// Whether the cluster serves the kind; true also where it does not say.
bool ServesJobs(RestClient& client) {
  const auto found = client.GetPath(fmt::format("/apis/{}", contract::kApiVersion));
  return !absl::IsNotFound(found.status());
}

// "; there are: a, b", or nothing where there are none or they may not be listed.
std::string WhichThereAre(Cluster& cluster) {
  const auto list = cluster.client->List(kube::kTrainingJob, cluster.ns, {.limit = 500});
  if (!list.ok() || list->items.empty()) return "";
  std::vector<std::string> names;
  for (const kube::ObjectPtr& job : list->items) names.push_back(kube::Name(*job));
  return "; there are: " + reconcile::NameList(names, kMostNames);
}

absl::Status NotFound(Cluster& cluster, const absl::Status& status, const std::string& job) {
  if (!ServesJobs(*cluster.client)) {
    return absl::NotFoundError(
        fmt::format("the cluster ({}) knows no TrainingJobs; install Ringmaster's chart there, or "
                    "choose another cluster with --context",
                    cluster.origin));
  }
  if (job.empty()) return status;
  return absl::NotFoundError(fmt::format("{}: no such job in namespace {} ({}){}", job, cluster.ns,
                                         cluster.origin, WhichThereAre(cluster)));
}

absl::Status With(const absl::Status& status, const std::string& mend) {
  return absl::Status(status.code(), fmt::format("{}; {}", Message(status), mend));
}

}  // namespace

absl::StatusOr<Cluster> Connect(const ClusterFlags& flags) {
  RM_ASSIGN_OR_RETURN(kube::rest::Config config, kube::rest::LoadDefault(flags.source));
  Cluster cluster;
  cluster.ns = flags.ns.empty() ? config.default_namespace : flags.ns;
  cluster.origin = config.origin;
  kube::rest::RestOptions options;
  options.user_agent = kFieldManager;
  options.attempt_timeout = std::chrono::seconds(flags.request_timeout);
  options.call_timeout = options.attempt_timeout;
  options.max_attempts = 3;  // a person waits
  RM_ASSIGN_OR_RETURN(cluster.client, RestClient::Connect(std::move(config), options));
  return cluster;
}

absl::Status Explain(Cluster& cluster, const absl::Status& status, const std::string& job) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return NotFound(cluster, status, job);
    case absl::StatusCode::kPermissionDenied:
      return With(status, fmt::format("who runs the cluster can grant it in namespace {}: the "
                                      "chart's rbac.aggregate adds TrainingJobs to the roles view, "
                                      "edit and admin",
                                      cluster.ns));
    case absl::StatusCode::kUnauthenticated:
      return With(status, fmt::format("the cluster and who you are come from {}: sign in again, or "
                                      "name another --context",
                                      cluster.origin));
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return With(status, fmt::format("the address comes from {}: is the API server running, and "
                                      "to be reached from here?",
                                      cluster.origin));
    default:
      return status;
  }
}

absl::StatusOr<kube::Json> GetJob(Cluster& cluster, const std::string& job) {
  auto found = cluster.client->Get(kube::kTrainingJob, {cluster.ns, job});
  if (!found.ok()) return Explain(cluster, found.status(), job);
  return found;
}

absl::StatusOr<std::vector<kube::ObjectPtr>> PodsOf(Cluster& cluster, const std::string& job) {
  auto list =
      cluster.client->List(kube::kPod, cluster.ns, {.label_selector = reconcile::Selector(job)});
  if (!list.ok()) return Explain(cluster, list.status(), "");
  return std::move(list->items);
}

int WithCluster(const ClusterFlags& flags, const std::function<absl::Status(Cluster&)>& act) {
  auto cluster = Connect(flags);
  if (!cluster.ok()) return FailWith(cluster.status());
  const absl::Status status = act(*cluster);
  return status.ok() ? contract::kExitOk : FailWith(status);
}

std::string JobName(const std::string& argument) {
  constexpr std::array<std::string_view, 6> kKinds = {"tj",
                                                      "trainingjob",
                                                      "trainingjobs",
                                                      kQualifier,
                                                      "trainingjobs.training.ringmaster.dev",
                                                      "TrainingJob"};
  const std::size_t slash = argument.find('/');
  if (slash == std::string::npos) return argument;
  for (const std::string_view kind : kKinds) {
    if (argument.substr(0, slash) == kind) return argument.substr(slash + 1);
  }
  return argument;
}

std::string QualifiedName(const std::string& job) {
  return fmt::format("{}/{}", kQualifier, job);
}

}  // namespace ringmaster::cli::kubectl

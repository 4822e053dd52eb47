// ringmaster-operator: the operator as a service, in one of two modes.
//
// --cluster: for a Kubernetes cluster (operator/cluster). --manifests: for a machine without one,
// it runs the manifests of a folder with a store and a node of its own (operator/local).
#include <chrono>
#include <filesystem>
#include <optional>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/file.h"
#include "common/heap.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/cluster/cluster_operator.h"
#include "operator/cluster/connection.h"
#include "operator/local/local_cluster.h"
#include "operator/local/manifest_folder.h"

namespace ringmaster {
namespace {

constexpr timespec kLookEvery{1, 0};
constexpr timespec kLookOften{0, 200'000'000};
constexpr std::chrono::seconds kReturnMemoryEvery{10};

struct FolderFlags {
  std::string manifests;
  std::string state = "/var/lib/ringmaster";
};

struct ClusterFlags {
  bool cluster = false;
  cluster::ConnectionOptions connection;
  cluster::ClusterOptions options;
  double lease_duration = 15;
  double renew_deadline = 10;
  double retry_period = 2;
  unsigned shutdown_timeout = 25;
};

// Blocks the stop signals, so that they wait for sigtimedwait in every thread.
sigset_t BlockStopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

absl::Status ServeFolder(const FolderFlags& flags, const std::string& metrics_address) {
  if (!std::filesystem::is_directory(flags.manifests)) {
    return absl::NotFoundError("--manifests " + flags.manifests +
                               ": no such folder; make it, or name the one that holds the jobs");
  }
  const sigset_t signals = BlockStopSignals();
  RM_RETURN_IF_ERROR(MakeDirectories(flags.state));
  RM_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(flags.state + "/lock", fmt::format("process {}", ::getpid())));
  RM_ASSIGN_OR_RETURN(auto cluster, local::LocalCluster::Open(
                                        {.state_directory = flags.state,
                                         .workspace = std::filesystem::absolute(flags.manifests),
                                         .metrics_address = metrics_address},
                                        SystemClock()));
  RM_RETURN_IF_ERROR(cluster->Start());
  log::Info("operator started", {{"manifests", flags.manifests}, {"state", flags.state}});
  local::ManifestFolder folder(flags.manifests, cluster->store());
  int signal = -1;
  do {
    if (const absl::Status status = folder.Sync(); !status.ok())
      log::Error("manifests not in line", {{"error", status}});
    signal = ::sigtimedwait(&signals, nullptr, &kLookEvery);
  } while (signal < 0);
  log::Info("operator stops; the next one on the same state resumes its jobs",
            {{"signal", signal}});
  return absl::OkStatus();
}

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Calls to an API server that does not answer must not hold up the end for longer than a kubelet
// waits.
void EndWithin(unsigned seconds) {
  ::signal(SIGALRM, [](int) { ::_exit(contract::kExitPeerLost); });
  ::alarm(seconds);
}

absl::Status ServeCluster(ClusterFlags flags, const std::string& metrics_address) {
  UseHeapSparingly();
  const sigset_t signals = BlockStopSignals();
  cluster::ClusterOptions& options = flags.options;
  options.metrics_address = metrics_address;
  options.lease_duration = FromSeconds(flags.lease_duration);
  options.renew_deadline = FromSeconds(flags.renew_deadline);
  options.retry_period = FromSeconds(flags.retry_period);
  options.pod = env::GetString(contract::kEnvPodName);
  if (options.host.empty()) options.host = env::GetString(contract::kEnvPodIp);
  flags.connection.renew_deadline = options.renew_deadline;
  RM_ASSIGN_OR_RETURN(const cluster::Connection connection, Connect(flags.connection));
  if (options.own_ns.empty()) options.own_ns = connection.ns;
  log::Info("operator starts", {{"cluster", connection.origin},
                                {"namespace", options.ns.empty() ? "all" : options.ns},
                                {"own_namespace", options.own_ns}});
  RM_ASSIGN_OR_RETURN(auto op,
                      cluster::ClusterOperator::Start(
                          options, {*connection.work, *connection.election, *connection.review},
                          *connection.clock));
  SteadyTime returned = SystemClock().SteadyNow();
  while (::sigtimedwait(&signals, nullptr, &kLookOften) < 0) {
    if (const SteadyTime now = SystemClock().SteadyNow(); now - returned > kReturnMemoryEvery) {
      ReturnFreeMemory();
      returned = now;
    }
    const std::optional<absl::Status> ended = op->Ended();
    if (!ended) continue;
    log::Error("operator ended", {{"error", *ended}});
    // Not in order: whatever waits for the API server now must not be waited for.
    ::_exit(ExitCodeFor(*ended));
  }
  log::Info("operator stops");
  EndWithin(flags.shutdown_timeout);
  op->Stop();
  return absl::OkStatus();
}

void AddClusterFlags(CLI::App& app, CLI::Option* mode, ClusterFlags& flags) {
  static constexpr char kGroup[] = "With --cluster";
  auto add = [&app, mode](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->needs(mode)->group(kGroup);
  };
  cluster::ClusterOptions& options = flags.options;
  add("--kubeconfig", flags.connection.source.kubeconfig,
      "Kubeconfig file; else $KUBECONFIG, ~/.kube/config, the pod's service account.");
  add("--context", flags.connection.source.context, "Context of the kubeconfig.");
  add("--namespace", options.ns, "Run the jobs of this namespace only; else of all.");
  app.add_flag("--leader-elect,!--no-leader-elect", options.leader_elect,
               "Of several operators one works at a time; on unless =false.")
      ->needs(mode)
      ->group(kGroup);
  add("--lease-name", options.name, "Name of the lease; the same for all replicas.")
      ->capture_default_str();
  add("--lease-namespace", options.own_ns, "Namespace of the lease; else the operator's own.");
  add("--lease-duration", flags.lease_duration,
      "Whole seconds after which a silent leader is replaced.")
      ->capture_default_str();
  add("--renew-deadline", flags.renew_deadline,
      "Seconds for which a leader tries to renew before it gives up.")
      ->capture_default_str();
  add("--retry-period", flags.retry_period, "Seconds between tries.")->capture_default_str();
  add("--rendezvous-address", options.rendezvous_address, "Where workers are listened for.")
      ->capture_default_str();
  add("--rendezvous-endpoint", options.rendezvous_endpoint,
      "What workers dial, host:port[,host:port]: a Service before all replicas; else this "
      "operator's own address.");
  add("--host", options.host,
      "Address of this operator for workers and other operators; else $RINGMASTER_POD_IP.");
  add("--health-address", options.health_address,
      "Serve /healthz and /readyz at host:port too, beside --metrics-address.");
  add("--worker-image", options.settings.worker_image,
      "Image of workers whose manifest names none.")
      ->capture_default_str();
  add("--launcher-image", options.settings.launcher_image,
      "Image that brings the launcher into pods of other images; else they must have it.");
  add("--worker-workspace", options.settings.workspace,
      "What relative paths of manifests start from, in the workers' containers.")
      ->capture_default_str();
  add("--gang-scheduling", options.gang,
      "Whose pod groups start workers together: auto (what the cluster has), native, volcano, "
      "coscheduling, none.")
      ->capture_default_str();
  add("--gang-scheduler-name", options.settings.gang_scheduler,
      "The scheduler that pods of a group name where their template names none; else volcano, or "
      "scheduler-plugins-scheduler for coscheduling.");
  add("--concurrent-jobs", options.concurrent_jobs, "Jobs that are reconciled at once.")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add("--kube-api-qps", flags.connection.qps, "Calls a second on average; 0 for no limit.")
      ->capture_default_str();
  add("--kube-api-burst", flags.connection.burst, "Calls at once after a pause.")
      ->capture_default_str();
  add("--shutdown-timeout", flags.shutdown_timeout,
      "Seconds to end in, less than the pod's grace period.")
      ->capture_default_str();
}

int Main(int argc, char** argv) {
  FolderFlags folder;
  ClusterFlags cluster;
  std::string metrics_address;
  CLI::App app(
      "Runs TrainingJobs: those of a Kubernetes cluster, or those of a folder on this machine.");
  auto* modes = app.add_option_group("Mode")->require_option(1);
  auto* cluster_mode =
      modes->add_flag("--cluster", cluster.cluster, "Run the jobs of a Kubernetes cluster.");
  auto* manifests =
      modes->add_option("--manifests", folder.manifests,
                        "Run the manifests of this folder; relative paths in them start here.");
  app.add_option("--state", folder.state, "Folder for the store's journal, logs and checkpoints.")
      ->capture_default_str()
      ->needs(manifests)
      ->group("With --manifests");
  app.add_option("--metrics-address", metrics_address,
                 "Serve Prometheus metrics at host:port, on a cluster /healthz and /readyz too.");
  AddClusterFlags(app, cluster_mode, cluster);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  absl::Status status = env::CheckAll();
  if (status.ok())
    status = cluster.cluster ? ServeCluster(std::move(cluster), metrics_address)
                             : ServeFolder(folder, metrics_address);
  if (!status.ok()) log::Error("operator ended", {{"error", status}});
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace ringmaster

int main(int argc, char** argv) {
  return ringmaster::Main(argc, argv);
}

// ringmaster-operator: the operator as a service.
//
// On a machine without Kubernetes it runs the manifests of a folder, with a store and a node of its
// own (operator/local).
#include <chrono>
#include <filesystem>
#include <signal.h>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/local/local_cluster.h"
#include "operator/local/manifest_folder.h"

namespace ringmaster {
namespace {

constexpr timespec kLookEvery{1, 0};

struct Flags {
  std::string manifests;
  std::string state = "/var/lib/ringmaster";
  std::string metrics_address;
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

absl::Status Serve(const Flags& flags) {
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
                                         .metrics_address = flags.metrics_address},
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

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Runs the TrainingJobs of a folder on this machine.");
  app.add_option("--manifests", flags.manifests,
                 "Folder of manifests; relative paths in them start here.")
      ->required();
  app.add_option("--state", flags.state, "Folder for the store's journal, logs and checkpoints.")
      ->capture_default_str();
  app.add_option("--metrics-address", flags.metrics_address,
                 "Serve Prometheus metrics at host:port.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  absl::Status status = env::CheckAll();
  if (status.ok()) status = Serve(flags);
  if (!status.ok()) log::Error("operator ended", {{"error", status}});
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace ringmaster

int main(int argc, char** argv) {
  return ringmaster::Main(argc, argv);
}

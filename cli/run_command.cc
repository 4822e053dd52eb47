#include "cli/run_command.h"

#include <memory>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/manifest.h"
#include "cli/run_directory.h"
#include "cli/screen.h"
#include "cli/signals.h"
#include "cli/submit.h"
#include "cli/watch.h"
#include "common/contract.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/local/local_cluster.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

absl::StatusOr<api::ParsedJob> ParseJob(const RunOptions& options) {
  std::vector<std::string> set = options.set;
  if (options.workers) set.push_back(fmt::format("spec.workers.replicas={}", *options.workers));
  return ReadManifest(options.manifest, set);
}

// The object as it is stored on a laptop, which has one namespace.
Json LocalObject(const api::ParsedJob& parsed) {
  Json object = parsed.object;
  if (kube::Namespace(object).empty()) object["metadata"]["namespace"] = "default";
  return object;
}

absl::StatusOr<std::unique_ptr<local::LocalCluster>> OpenCluster(const RunOptions& options,
                                                                 const RunDirectory& directory) {
  local::LocalCluster::Options cluster;
  cluster.state_directory = directory.path();
  cluster.workspace = std::filesystem::absolute(options.manifest).parent_path();
  cluster.metrics_address = options.metrics_address;
  return local::LocalCluster::Open(cluster, SystemClock());
}

// Opens what an earlier run left, or a new store where that run is over, is another, or is not
// wanted.
absl::StatusOr<std::unique_ptr<local::LocalCluster>> OpenForJob(const RunOptions& options,
                                                                RunDirectory& directory,
                                                                const kube::ObjectKey& key) {
  if (options.fresh && directory.HasJournal()) RM_RETURN_IF_ERROR(directory.SetAside());
  auto opened = OpenCluster(options, directory);
  if (absl::IsDataLoss(opened.status()))
    return Annotate(opened.status(),
                    "what an earlier run left cannot be read; start over with "
                    "--fresh");
  RM_ASSIGN_OR_RETURN(auto cluster, std::move(opened));
  const auto stored = cluster->store().Get(kube::kTrainingJob, key);
  if (!stored.ok() || !IsOver(*stored)) return cluster;
  cluster.reset();
  RM_RETURN_IF_ERROR(directory.SetAside());
  return OpenCluster(options, directory);
}

// Asks the operator to suspend the job: the workers checkpoint and leave.
absl::Status Suspend(kube::Client& client, const kube::ObjectKey& key) {
  return client.Patch(kube::kTrainingJob, key, {{"spec", {{"suspend", true}}}}).status();
}

}  // namespace

int Run(const RunOptions& options) {
  const auto parsed = ParseJob(options);
  if (!parsed.ok()) return FailWith(parsed.status());
  RunDirectory directory(kube::Name(parsed->object));
  if (const absl::Status status = directory.Lock(); !status.ok()) return FailWith(status);
  if (const absl::Status status = log::ToFile(directory.operator_log()); !status.ok())
    return FailWith(status);
  CatchStopSignals();

  const Json object = LocalObject(*parsed);
  const kube::ObjectKey key = kube::KeyOf(object);
  auto cluster = OpenForJob(options, directory, key);
  if (!cluster.ok()) return FailWith(cluster.status());
  const auto submission = Submit((*cluster)->store(), object);
  if (!submission.ok()) return FailWith(submission.status());
  Screen screen(STDOUT_FILENO, !options.plain && IsTerminal(STDOUT_FILENO));
  JobWatch watch(**cluster, key, directory, screen, *submission == Submission::kResumed);
  if (const absl::Status status = (*cluster)->Start(); !status.ok()) return FailWith(status);

  bool suspending = false;
  while (!watch.Refresh()) {
    if (StopSignals() > 1) {
      watch.Close("stopped at once; run the same command to resume from the last checkpoint");
      return contract::kExitInterrupted;
    }
    if (StopSignals() == 1 && !suspending) {
      suspending = true;
      screen.Print("  stopping: the workers checkpoint and leave (Ctrl-C again to stop at once)");
      if (const absl::Status status = Suspend((*cluster)->store(), key); !status.ok())
        return FailWith(status);
    }
    watch.Wait();
  }
  return watch.Conclude(suspending);
}

}  // namespace ringmaster::cli

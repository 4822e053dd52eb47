#include "cli/kubectl/change_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/submit.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/text.h"
#include "operator/api/salvage.h"
#include "operator/kube/object.h"
#include "operator/reconcile/names.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;

constexpr auto kLookEvery = std::chrono::milliseconds(250);

absl::Status CheckGoesOn(const Json& job, const char* what) {
  if (!IsOver(job)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} has {}: there is nothing to {}", kube::Name(job),
                  kube::FindString(job, {"status", "state"}), what));
}

int SetSuspend(const ClusterFlags& flags, const std::string& name, bool suspend) {
  const char* what = suspend ? "suspend" : "resume";
  const char* done = suspend ? "suspended" : "resumed";
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_ASSIGN_OR_RETURN(const Json job, GetJob(cluster, name));
    RM_RETURN_IF_ERROR(CheckGoesOn(job, what));
    if (kube::FindBool(job, {"spec", "suspend"}) == suspend) {
      fmt::print("{} {}\n", QualifiedName(name),
                 suspend ? "is suspended already" : "is not suspended");
      return absl::OkStatus();
    }
    const auto changed = cluster.client->Patch(kube::kTrainingJob, {cluster.ns, name},
                                               {{"spec", {{"suspend", suspend}}}});
    if (!changed.ok()) return Explain(cluster, changed.status(), name);
    fmt::print("{} {}\n", QualifiedName(name), done);
    return absl::OkStatus();
  });
}

int64_t Workers(const Json& job) {
  return kube::FindInt(job, {"spec", "workers", "replicas"}).value_or(1);
}

// "1 to 4 workers": what the manifest, and the shards that were fixed at the first round, allow.
std::string Bounds(const Json& job) {
  const int64_t least = kube::FindInt(job, {"spec", "workers", "minReplicas"}).value_or(1);
  int64_t most = kube::FindInt(job, {"spec", "workers", "maxReplicas"}).value_or(0);
  const int64_t shards = kube::FindInt(job, {"status", "shards"}).value_or(0);
  if (shards > 0) most = most == 0 ? shards : std::min(most, shards);
  if (most == 0) return fmt::format("{} or more workers", least);
  return fmt::format("{} to {} workers", least, most);
}

// Those that the change brings; a stored job may have others.
std::vector<std::string> NewProblems(const Json& before, const Json& after) {
  const auto old = api::ReadStored(before).problems;
  std::vector<std::string> lines;
  for (const auto& problem : api::ReadStored(after).problems) {
    const bool was_there = std::ranges::any_of(old, [&](const auto& known) {
      return known.path == problem.path && known.message == problem.message;
    });
    if (!was_there) lines.push_back(problem.path + ": " + problem.message);
  }
  return lines;
}

// kDeadlineExceeded, naming the pods that are left, unless the object of this uid goes in time.
absl::Status AwaitGone(Cluster& cluster, const DeleteOptions& options, const std::string& uid) {
  const SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(options.timeout);
  while (true) {
    const auto found = cluster.client->Get(kube::kTrainingJob, {cluster.ns, options.job});
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    if (!found.ok()) return Explain(cluster, found.status(), options.job);
    if (kube::Uid(*found) != uid) return absl::OkStatus();  // another one has taken the name
    if (SteadyTime::clock::now() >= deadline) break;
    std::this_thread::sleep_for(kLookEvery);
  }
  RM_ASSIGN_OR_RETURN(const auto pods, PodsOf(cluster, options.job));
  std::vector<std::string> names;
  for (const kube::ObjectPtr& pod : pods) names.push_back(kube::Name(*pod));
  return absl::DeadlineExceededError(fmt::format(
      "{}: not gone after {} s{}; the cluster goes on deleting it", options.job, options.timeout,
      names.empty() ? "" : ", pods that are left: " + reconcile::NameList(names)));
}

}  // namespace

int Suspend(const ClusterFlags& flags, const std::string& job) {
  return SetSuspend(flags, job, true);
}

int Resume(const ClusterFlags& flags, const std::string& job) {
  return SetSuspend(flags, job, false);
}

absl::Status CheckWorkers(const Json& job, int workers) {
  Json scaled = job;
  scaled["spec"]["workers"]["replicas"] = workers;
  std::vector<std::string> problems = NewProblems(job, scaled);
  const int64_t shards = kube::FindInt(job, {"status", "shards"}).value_or(0);
  if (shards > 0 && workers > shards) {
    problems.push_back(
        fmt::format("spec.workers.replicas: {} is more than the {} virtual shards "
                    "that the job began with",
                    workers, shards));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: {}; it may have {}", kube::Name(job),
                                                fmt::join(problems, "; "), Bounds(job)));
}

int Scale(const ClusterFlags& flags, const std::string& name, int workers) {
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_ASSIGN_OR_RETURN(const Json job, GetJob(cluster, name));
    RM_RETURN_IF_ERROR(CheckGoesOn(job, "scale"));
    if (Workers(job) == workers) {
      fmt::print("{} has {} already\n", QualifiedName(name), WithNoun(workers, "worker"));
      return absl::OkStatus();
    }
    RM_RETURN_IF_ERROR(CheckWorkers(job, workers));
    const absl::Status scaled =
        cluster.client->Scale(kube::kTrainingJob, {cluster.ns, name}, workers);
    if (!scaled.ok()) return Explain(cluster, scaled, name);
    fmt::print("{} scaled from {} to {}\n", QualifiedName(name), Workers(job),
               WithNoun(workers, "worker"));
    return absl::OkStatus();
  });
}

int Delete(const ClusterFlags& flags, const DeleteOptions& options) {
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_ASSIGN_OR_RETURN(const Json job, GetJob(cluster, options.job));
    const std::string uid = kube::Uid(job);
    // In the foreground the job goes last, so that its end is the end of its pods.
    const absl::Status deleted =
        cluster.client->Delete(kube::kTrainingJob, {cluster.ns, options.job},
                               {.uid = uid,
                                .resource_version = "",
                                .propagation = options.wait ? kube::Propagation::kForeground
                                                            : kube::Propagation::kBackground,
                                .grace_period = std::nullopt});
    // Not found: it went meanwhile, or by a first try whose answer was lost.
    if (!deleted.ok() && !absl::IsNotFound(deleted)) {
      return Explain(cluster, deleted, options.job);
    }
    if (options.wait) RM_RETURN_IF_ERROR(AwaitGone(cluster, options, uid));
    fmt::print("{} {}\n", QualifiedName(options.job),
               options.wait ? "deleted" : "is being deleted");
    return absl::OkStatus();
  });
}

}  // namespace ringmaster::cli::kubectl

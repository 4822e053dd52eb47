#include "cli/kubectl/submit_command.h"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/kubectl/output.h"
#include "cli/manifest.h"
#include "cli/submit.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;

constexpr char kStandardInput[] = "/dev/stdin";

absl::StatusOr<Json> ReadWritten(const SubmitOptions& options) {
  std::vector<std::string> set = options.set;
  if (options.workers) set.push_back(fmt::format("spec.workers.replicas={}", *options.workers));
  RM_ASSIGN_OR_RETURN(
      api::ParsedJob parsed,
      ReadManifest(options.manifest == "-" ? kStandardInput : options.manifest, set));
  return std::move(parsed.written);
}

// As kubectl, which does not guess which of two namespaces is meant.
absl::Status SetNamespace(const ClusterFlags& flags, Cluster& cluster, Json& job) {
  const std::string ns = kube::Namespace(job);
  if (!ns.empty() && !flags.ns.empty() && ns != flags.ns) {
    return absl::InvalidArgumentError(fmt::format(
        "metadata.namespace is {} and --namespace {}; leave one of them out", ns, flags.ns));
  }
  if (!ns.empty()) cluster.ns = ns;
  job["metadata"]["namespace"] = cluster.ns;
  return absl::OkStatus();
}

absl::Status ExplainApply(Cluster& cluster, const absl::Status& status, const std::string& job) {
  if (!absl::IsAborted(status)) return Explain(cluster, status, job);
  return absl::AbortedError(
      fmt::format("{}; leave these fields out of the manifest to keep what was set, or take them "
                  "back with --force-conflicts",
                  Message(status)));
}

const char* WhatWasDone(const absl::StatusOr<Json>& before, const Json& after) {
  if (!before.ok()) return "submitted";
  return kube::ResourceVersion(*before) == kube::ResourceVersion(after) ? "unchanged"
                                                                        : "configured";
}

absl::Status Apply(Cluster& cluster, const Json& job, const SubmitOptions& options) {
  const kube::ObjectKey key = kube::KeyOf(job);
  const auto before = cluster.client->Get(kube::kTrainingJob, key);
  if (!before.ok() && !absl::IsNotFound(before.status()))
    return Explain(cluster, before.status(), key.name);
  const auto after = cluster.client->Apply(
      kube::kTrainingJob, job, {.field_manager = kFieldManager, .force = options.force_conflicts});
  if (!after.ok()) return ExplainApply(cluster, after.status(), key.name);
  if (!options.output.empty()) {
    fmt::print("{}", FormatObject(*after, options.output));
  } else {
    fmt::print("{} {} in namespace {}\n", QualifiedName(key.name), WhatWasDone(before, *after),
               key.ns);
  }
  if (IsOver(*after)) {
    fmt::print(stderr,
               "{} has {} and is not run again; delete it first, or give the new one "
               "another name\n",
               key.name, kube::FindString(*after, {"status", "state"}));
  }
  return absl::OkStatus();
}

}  // namespace

int Submit(const ClusterFlags& flags, const SubmitOptions& options) {
  auto job = ReadWritten(options);
  if (!job.ok()) return FailWith(job.status());
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_RETURN_IF_ERROR(SetNamespace(flags, cluster, *job));
    return Apply(cluster, *job, options);
  });
}

}  // namespace ringmaster::cli::kubectl

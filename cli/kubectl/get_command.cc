#include "cli/kubectl/get_command.h"

#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/get_command.h"
#include "cli/kubectl/job_detail.h"
#include "cli/kubectl/output.h"
#include "cli/kubectl/pod_warnings.h"
#include "common/clock.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/resource_path.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;

// Page by page.
absl::StatusOr<std::vector<Json>> EventsWhere(Cluster& cluster, const std::string& selector) {
  std::vector<Json> events;
  std::string next;
  do {
    const auto query = kube::rest::Query()
                           .Add("fieldSelector", selector)
                           .Add("limit", "500")
                           .Add("continue", next);
    const auto page = cluster.client->GetPath(kube::rest::CollectionPath(kube::kEvent, cluster.ns) +
                                              query.text());
    if (!page.ok()) return Explain(cluster, page.status(), "");
    const Json* items = kube::Find(*page, {"items"});
    if (items != nullptr && items->is_array()) {
      events.insert(events.end(), items->begin(), items->end());
    }
    next = kube::FindString(*page, {"metadata", "continue"});
  } while (!next.empty());
  return events;
}

// The events about the job itself.
absl::StatusOr<std::vector<Json>> EventsOf(Cluster& cluster, const std::string& job) {
  return EventsWhere(cluster, fmt::format("involvedObject.kind={},involvedObject.name={}",
                                          kube::kTrainingJob.kind, job));
}

// What pending pods are warned of. Less than all of it, and a word on standard error, where events
// cannot be read: the job is worth being shown all the same.
std::vector<Json> WarningsOf(Cluster& cluster, const std::vector<kube::ObjectPtr>& pods) {
  std::vector<Json> warnings;
  for (const kube::ObjectPtr& pod : PendingPods(pods)) {
    const auto events = EventsWhere(cluster, WarningsSelector(*pod));
    if (!events.ok()) {
      fmt::print(stderr, "why pods are pending is not known: {}\n", Message(events.status()));
      break;
    }
    warnings.insert(warnings.end(), events->begin(), events->end());
  }
  return warnings;
}

absl::Status GetOne(Cluster& cluster, const GetOptions& options) {
  RM_ASSIGN_OR_RETURN(const Json job, GetJob(cluster, options.job));
  if (options.output == kWide) {
    fmt::print("{}", JobTable({job}, SystemClock().Now(), {.wide = true}));
  } else if (!options.output.empty()) {
    fmt::print("{}", FormatObject(job, options.output));
  } else {
    RM_ASSIGN_OR_RETURN(const auto pods, PodsOf(cluster, options.job));
    const std::vector<Json> warnings = WarningsOf(cluster, pods);
    fmt::print("{}", JobDetail(job, pods, warnings, SystemClock().Now()));
  }
  return absl::OkStatus();
}

absl::Status GetAll(Cluster& cluster, const GetOptions& options) {
  const auto list =
      cluster.client->List(kube::kTrainingJob, options.all_namespaces ? "" : cluster.ns, {});
  if (!list.ok()) return Explain(cluster, list.status(), "");
  std::vector<Json> jobs;
  for (const kube::ObjectPtr& job : list->items) jobs.push_back(*job);
  const bool wide = options.output == kWide;
  if (!options.output.empty() && !wide) {
    fmt::print("{}", FormatObjects(jobs, options.output));
  } else if (jobs.empty()) {
    fmt::print(stderr, "no jobs in {}\n",
               options.all_namespaces ? "any namespace" : "namespace " + cluster.ns);
  } else {
    fmt::print("{}",
               JobTable(jobs, SystemClock().Now(), {.ns = options.all_namespaces, .wide = wide}));
  }
  return absl::OkStatus();
}

}  // namespace

int Get(const ClusterFlags& flags, const GetOptions& options) {
  return WithCluster(flags, [&](Cluster& cluster) {
    return options.job.empty() ? GetAll(cluster, options) : GetOne(cluster, options);
  });
}

int Events(const ClusterFlags& flags, const EventsOptions& options) {
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_ASSIGN_OR_RETURN(const std::vector<Json> events, EventsOf(cluster, options.job));
    // A deleted job's events outlive it; without any, the name may be wrong.
    if (events.empty()) RM_RETURN_IF_ERROR(GetJob(cluster, options.job).status());
    if (!options.output.empty()) {
      fmt::print("{}", FormatObjects(events, options.output));
    } else if (events.empty()) {
      fmt::print(stderr, "nothing has happened to {} that the cluster still keeps\n", options.job);
    } else {
      fmt::print("{}", EventTable(events, SystemClock().Now()));
    }
    return absl::OkStatus();
  });
}

}  // namespace ringmaster::cli::kubectl

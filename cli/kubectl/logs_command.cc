#include "cli/kubectl/logs_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/kubectl/job_detail.h"
#include "cli/kubectl/pod_log_reader.h"
#include "cli/kubectl/worker_pods.h"
#include "cli/submit.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/reconcile/names.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;
using Pods = std::vector<kube::ObjectPtr>;

constexpr auto kPollEvery = std::chrono::milliseconds(100);
constexpr auto kLookEvery = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::seconds(30);  // for the logs of a job that has ended
constexpr auto kMostAway = std::chrono::minutes(5);
constexpr std::size_t kMostFollowed = 200;  // each is a connection of its own

std::vector<std::string> ContainersOf(const Json& pod) {
  std::vector<std::string> names;
  const Json* containers = kube::Find(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return names;
  for (const Json& container : *containers) names.push_back(kube::FindString(container, {"name"}));
  return names;
}

absl::Status CheckContainer(const Json& pod, const std::string& container) {
  const std::vector<std::string> names = ContainersOf(pod);
  if (container.empty() || std::ranges::count(names, container) > 0) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("no container {} in {}; there are: {}", container,
                                         kube::Name(pod), reconcile::NameList(names)));
}

PodLogReader ReaderOf(Cluster& cluster, const Json& pod, const LogsOptions& options) {
  PodLogReader::Options reader;
  reader.container = options.container;
  const std::vector<std::string> containers = ContainersOf(pod);
  if (reader.container.empty() && !containers.empty()) reader.container = containers.front();
  if (options.tail >= 0) reader.tail_lines = options.tail;
  reader.follow = options.follow;
  reader.timestamps = options.timestamps;
  return PodLogReader(*cluster.client, kube::KeyOf(pod), std::move(reader));
}

PodLogReader::Line Printer(const std::string& prefix) {
  return [prefix](std::string_view line) { fmt::print("{}{}\n", prefix, line); };
}

bool HasStarted(const Json& pod) {
  return kube::FindString(pod, {"status", "phase"}) != "Pending";
}

absl::StatusOr<std::optional<int>> WantedIndex(const Json& job, const LogsOptions& options) {
  if (!options.rank) return options.worker;
  RM_ASSIGN_OR_RETURN(const int index, IndexOfRank(job, *options.rank));
  return std::optional(index);
}

absl::Status PrintOne(Cluster& cluster, const Json& pod, const LogsOptions& options,
                      const std::string& prefix) {
  RM_RETURN_IF_ERROR(CheckContainer(pod, options.container));
  if (!HasStarted(pod))
    return absl::NotFoundError("has not started, so there is no log yet; " + PodState(pod));
  PodLogReader reader = ReaderOf(cluster, pod, options);
  absl::Status status;
  while (status.ok() && !reader.over()) status = reader.Poll(Printer(prefix));
  std::fflush(stdout);
  return status;
}

bool HasEnded(const Json& pod) {
  const std::string phase = kube::FindString(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

// Each log from its beginning to its present end; one that cannot be read does not keep the others
// back.
absl::Status PrintNow(Cluster& cluster, const Pods& pods, const LogsOptions& options) {
  absl::Status first;
  for (const kube::ObjectPtr& pod : pods) {
    const absl::Status status =
        Annotate(PrintOne(cluster, *pod, options, pods.size() > 1 ? kube::Name(*pod) + "  " : ""),
                 kube::Name(*pod));
    if (status.ok()) continue;
    if (!first.ok()) fmt::print(stderr, "{}\n", Message(first));
    first = status;
  }
  return first;
}

absl::Status PrintReplaced(Cluster& cluster, const Json& job, const Pods& pods,
                           std::optional<int> index, const LogsOptions& options) {
  RM_ASSIGN_OR_RETURN(const Replaced replaced, ReplacedPods(job, pods, index));
  if (!replaced.last_words.empty()) {
    fmt::print(stderr, "these pods are gone; the job's status keeps their last words:\n");
    for (const std::string& words : replaced.last_words) fmt::print("{}\n", words);
  }
  return PrintNow(cluster, replaced.pods, options);
}

// Follows the latest pod of each wanted worker, and those that replace them, in one thread.
class Follower {
 public:
  Follower(Cluster& cluster, const LogsOptions& options, std::optional<int> index, Json job)
      : cluster_(cluster), options_(options), index_(index), job_(std::move(job)) {}

  // Until the job has ended, is suspended or deleted, and all logs are read. kNotFound: there was
  // none. A server that is away for longer than kMostAway is an error.
  absl::Status Run() {
    SteadyTime look;
    std::optional<SteadyTime> give_up;  // set once the job has ended
    while (true) {
      const SteadyTime now = SteadyTime::clock::now();
      if (now >= look) {
        RM_ASSIGN_OR_RETURN(const bool ended, Look());
        if (ended && !give_up) give_up = now + kPatience;
        look = now + kLookEvery;
      }
      RM_RETURN_IF_ERROR(PollAll());
      if (give_up && readers_.empty()) return LatestPods(job_, {}, index_).status();
      if (give_up && AllOver()) return absl::OkStatus();
      if (give_up && now >= *give_up) return NotToTheEnd();
      std::this_thread::sleep_for(kPollEvery);
    }
  }

 private:
  struct Source {
    PodLogReader reader;
    std::string name;
    std::string trouble;  // that was told
  };

  // Whether there is nothing more to come. Adds the pods that are new.
  absl::StatusOr<bool> Look() {
    auto job = cluster_.client->Get(kube::kTrainingJob, {cluster_.ns, options_.job});
    if (absl::IsNotFound(job.status())) {
      RefreshAll({});
      return true;
    }
    if (!job.ok()) return Tell(Explain(cluster_, job.status(), options_.job));
    job_ = *std::move(job);
    const auto pods = PodsOf(cluster_, options_.job);
    if (!pods.ok()) return Tell(pods.status());
    heard_ = SteadyTime::clock::now();
    RefreshAll(*pods);
    std::size_t followed = 0;
    for (const WorkerPods& worker : WorkersOf(*pods)) {
      if (index_ && worker.index != *index_) continue;
      ++followed;
      RM_RETURN_IF_ERROR(Add(*worker.pods.back()));
    }
    if (followed > kMostFollowed) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {} workers are more than can be followed at once ({}); choose one with "
                      "--rank or --worker",
                      options_.job, followed, kMostFollowed));
    }
    return IsOver(job_) ||
           (kube::FindString(job_, {"status", "state"}) == "Suspended" && pods->empty());
  }

  void RefreshAll(const Pods& pods) {
    for (auto& [uid, source] : readers_) {
      const auto pod = std::ranges::find_if(
          pods, [&, &id = uid](const kube::ObjectPtr& each) { return kube::Uid(*each) == id; });
      if (pod == pods.end()) {
        source.reader.Abandon();
      } else {
        source.reader.Refresh(HasEnded(**pod));
      }
    }
  }

  absl::Status Add(const Json& pod) {
    RM_RETURN_IF_ERROR(CheckContainer(pod, options_.container));
    if (HasStarted(pod)) {
      readers_.try_emplace(kube::Uid(pod),
                           Source{ReaderOf(cluster_, pod, options_), kube::Name(pod), ""});
    }
    return absl::OkStatus();
  }

  absl::Status PollAll() {
    for (auto& [uid, source] : readers_) {
      // With the pod's name also where one is followed: another may replace it.
      const absl::Status status = source.reader.Poll(Printer(source.name + "  "));
      if (absl::IsPermissionDenied(status)) return Explain(cluster_, status, options_.job);
      if (absl::IsNotFound(status)) {
        source.reader.Abandon();
      } else if (!status.ok() && source.trouble != Message(status)) {
        source.trouble = Message(status);
        fmt::print(stderr, "{}: {}\n", source.name, source.trouble);
      }
    }
    std::fflush(stdout);
    return absl::OkStatus();
  }

  bool AllOver() const {
    return std::ranges::all_of(readers_,
                               [](const auto& entry) { return entry.second.reader.over(); });
  }

  absl::Status NotToTheEnd() const {
    std::vector<std::string> names;
    for (const auto& [uid, source] : readers_) {
      if (!source.reader.over()) names.push_back(source.name);
    }
    return absl::UnavailableError(fmt::format("{}: the job has ended, but these logs did not: {}",
                                              options_.job, reconcile::NameList(names)));
  }

  // A server that is away for a moment is not the end.
  absl::StatusOr<bool> Tell(const absl::Status& status) {
    const bool is_away = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
                         absl::IsResourceExhausted(status);
    if (!is_away || SteadyTime::clock::now() - heard_ > kMostAway) return status;
    if (trouble_ != Message(status)) fmt::print(stderr, "{}\n", Message(status));
    trouble_ = Message(status);
    return false;
  }

  Cluster& cluster_;
  const LogsOptions& options_;
  const std::optional<int> index_;
  Json job_;  // as last seen
  SteadyTime heard_ = SteadyTime::clock::now();
  std::map<std::string, Source> readers_;  // by the pod's uid
  std::string trouble_;
};

}  // namespace

int Logs(const ClusterFlags& flags, const LogsOptions& options) {
  return WithCluster(flags, [&](Cluster& cluster) -> absl::Status {
    RM_ASSIGN_OR_RETURN(const Json job, GetJob(cluster, options.job));
    RM_ASSIGN_OR_RETURN(const std::optional<int> index, WantedIndex(job, options));
    RM_RETURN_IF_ERROR(CheckIndex(job, index));
    RM_ASSIGN_OR_RETURN(const Pods pods, PodsOf(cluster, options.job));
    if (options.previous) return PrintReplaced(cluster, job, pods, index, options);
    if (options.follow) return Follower(cluster, options, index, job).Run();
    RM_ASSIGN_OR_RETURN(const Pods latest, LatestPods(job, pods, index));
    return PrintNow(cluster, latest, options);
  });
}

}  // namespace ringmaster::cli::kubectl

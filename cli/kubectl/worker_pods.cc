#include "cli/kubectl/worker_pods.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/pod_name.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;

const Json kNothing = Json::array();

const Json& ListAt(const Json& object, kube::FieldPath path) {
  const Json* list = kube::Find(object, path);
  return list != nullptr && list->is_array() ? *list : kNothing;
}

int64_t MostWorkers(const Json& job) {
  const auto Workers = [&](const char* field) {
    return kube::FindInt(job, {"spec", "workers", field}).value_or(1);
  };
  return std::max(Workers("replicas"), Workers("maxReplicas"));
}

absl::Status NoPods(const Json& job, std::optional<int> index) {
  const std::string state = kube::FindString(job, {"status", "state"});
  return absl::NotFoundError(fmt::format("{}: no pod{} now; the job is {}", kube::Name(job),
                                         index ? fmt::format(" of worker {}", *index) : "",
                                         state.empty() ? "not seen by an operator yet" : state));
}

}  // namespace

absl::Status CheckIndex(const Json& job, std::optional<int> index) {
  const int64_t most = MostWorkers(job);
  if (!index || *index < most) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("{}: no worker {}; there {}", kube::Name(job), *index,
                  most == 1 ? "is worker 0 alone" : fmt::format("are workers 0 to {}", most - 1)));
}

std::vector<WorkerPods> WorkersOf(const std::vector<kube::ObjectPtr>& pods) {
  std::map<int, std::map<int, kube::ObjectPtr>> sorted;  // index, incarnation
  for (const kube::ObjectPtr& pod : pods) {
    const int index = IndexOf(*pod);
    if (index >= 0) sorted[index][IncarnationOf(*pod)] = pod;
  }
  std::vector<WorkerPods> workers;
  for (const auto& [index, incarnations] : sorted) {
    WorkerPods& worker = workers.emplace_back();
    worker.index = index;
    for (const auto& [incarnation, pod] : incarnations) worker.pods.push_back(pod);
  }
  return workers;
}

absl::StatusOr<int> IndexOfRank(const Json& job, int rank) {
  const Json& members = ListAt(job, {"status", "members"});
  const std::string name = kube::Name(job);
  for (const Json& member : members) {
    if (kube::FindInt(member, {"rank"}) != rank) continue;
    const auto numbers = ParsePodName(kube::FindString(member, {"pod"}), name);
    if (numbers) return numbers->first;
  }
  if (members.empty())
    return absl::NotFoundError(fmt::format(
        "{}: no round yet, so no ranks; name a worker by its index with --worker", name));
  return absl::NotFoundError(
      fmt::format("{}: no rank {} in round {}; there are ranks 0 to {}", name, rank,
                  kube::FindInt(job, {"status", "round"}).value_or(0), members.size() - 1));
}

absl::StatusOr<std::vector<kube::ObjectPtr>> LatestPods(const Json& job,
                                                        const std::vector<kube::ObjectPtr>& pods,
                                                        std::optional<int> index) {
  std::vector<kube::ObjectPtr> latest;
  for (const WorkerPods& worker : WorkersOf(pods)) {
    if (!index || worker.index == *index) latest.push_back(worker.pods.back());
  }
  if (latest.empty()) return NoPods(job, index);
  return latest;
}

absl::StatusOr<Replaced> ReplacedPods(const Json& job, const std::vector<kube::ObjectPtr>& pods,
                                      std::optional<int> index) {
  Replaced replaced;
  std::map<int, std::string> last_words;  // of each index
  for (const Json& incident : ListAt(job, {"status", "restarts", "recent"})) {
    const std::string pod = kube::FindString(incident, {"pod"});
    const auto numbers = ParsePodName(pod, kube::Name(job));
    if (numbers)
      last_words[numbers->first] =
          fmt::format("{}: {}", pod, kube::FindString(incident, {"message"}));
  }
  for (const WorkerPods& worker : WorkersOf(pods)) {
    if (worker.pods.size() < 2 || (index && worker.index != *index)) continue;
    replaced.pods.push_back(worker.pods[worker.pods.size() - 2]);
    last_words.erase(worker.index);
  }
  for (auto& [worker, words] : last_words) {
    if (!index || worker == *index) replaced.last_words.push_back(std::move(words));
  }
  if (!replaced.pods.empty() || !replaced.last_words.empty()) return replaced;
  return absl::NotFoundError(fmt::format(
      "{}: nothing is left of an earlier pod{}; \"kubectl ringmaster events {}\" tells what "
      "happened",
      kube::Name(job), index ? fmt::format(" of worker {}", *index) : "", kube::Name(job)));
}

}  // namespace ringmaster::cli::kubectl

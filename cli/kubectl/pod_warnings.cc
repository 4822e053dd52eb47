#include "cli/kubectl/pod_warnings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/kubectl/worker_pods.h"
#include "cli/text.h"
#include "operator/kube/object.h"
#include "operator/reconcile/names.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;

constexpr std::size_t kMostPods = 16;
constexpr std::size_t kMostWarnings = 5;
constexpr char kFailedScheduling[] = "FailedScheduling";

bool IsPending(const Json& pod) {
  return kube::FindString(pod, {"status", "phase"}) == "Pending" && !kube::IsDeleting(pod);
}

// When it was last said. Schedulers write other fields than kubelets do.
std::optional<Time> LastSeen(const Json& event) {
  if (const auto time = kube::FindTime(event, {"series", "lastObservedTime"})) return time;
  if (const auto time = kube::FindTime(event, {"lastTimestamp"})) return time;
  return kube::FindTime(event, {"eventTime"});
}

// A pod that has found a node waits for something else now.
bool IsStale(const Json& event, const Json& pod) {
  return kube::FindString(event, {"reason"}) == kFailedScheduling &&
         !kube::FindString(pod, {"spec", "nodeName"}).empty();
}

struct Warning {
  std::optional<Time> seen;
  std::string reason;
  std::string message;
  std::vector<std::string> pods;
};

std::vector<Warning> Gather(const std::vector<kube::ObjectPtr>& pods,
                            const std::vector<Json>& events) {
  std::map<std::pair<std::string, std::string>, Warning> gathered;  // by reason and message
  for (const kube::ObjectPtr& pod : pods) {
    for (const Json& event : events) {
      const bool of_pod = kube::FindString(event, {"involvedObject", "uid"}) == kube::Uid(*pod);
      if (!of_pod || IsStale(event, *pod)) continue;
      const std::string reason = kube::FindString(event, {"reason"});
      const std::string message = kube::FindString(event, {"message"});
      Warning& warning = gathered[{reason, message}];
      warning.reason = reason;
      warning.message = message;
      warning.seen = std::max(warning.seen, LastSeen(event));
      const std::string name = kube::Name(*pod);
      if (warning.pods.empty() || warning.pods.back() != name) warning.pods.push_back(name);
    }
  }
  std::vector<Warning> latest;
  for (auto& [words, warning] : gathered) latest.push_back(std::move(warning));
  std::ranges::stable_sort(latest, std::ranges::greater(), &Warning::seen);
  if (latest.size() > kMostWarnings) latest.resize(kMostWarnings);
  return latest;
}

}  // namespace

std::vector<kube::ObjectPtr> PendingPods(const std::vector<kube::ObjectPtr>& pods) {
  std::vector<kube::ObjectPtr> pending;
  for (const WorkerPods& worker : WorkersOf(pods)) {
    const kube::ObjectPtr& latest = worker.pods.back();
    if (IsPending(*latest) && pending.size() < kMostPods) pending.push_back(latest);
  }
  return pending;
}

std::string WarningsSelector(const Json& pod) {
  return fmt::format("involvedObject.uid={},type=Warning", kube::Uid(pod));
}

std::string WarningsTable(const std::vector<kube::ObjectPtr>& pods,
                          const std::vector<Json>& warnings, Time now) {
  std::vector<std::vector<std::string>> rows{{"  PENDING", "LAST SEEN", "WARNING", "MESSAGE"}};
  for (const Warning& warning : Gather(pods, warnings)) {
    rows.push_back({"  " + reconcile::NameList(warning.pods), Ago(warning.seen, now),
                    warning.reason, LastCell(warning.message)});
  }
  return rows.size() == 1 ? "" : FormatTable(rows);
}

}  // namespace ringmaster::cli::kubectl

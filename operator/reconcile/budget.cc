#include "operator/reconcile/budget.h"

#include <algorithm>

namespace ringmaster::reconcile {
namespace {

constexpr std::size_t kAlwaysKept = 8;
constexpr std::size_t kMostKept = 256;  // a status must fit into an API object

bool Within(const training::v1alpha1::Incident& incident, Duration window, Time now) {
  return incident.time && *incident.time > now - window;
}

}  // namespace

std::optional<int> BudgetOf(const training::v1alpha1::Restart& restart, Cause cause) {
  switch (cause) {
    case Cause::kCode:
      return restart.code;
    case Cause::kOutOfMemory:
      return restart.out_of_memory;
    case Cause::kHardware:
      return restart.hardware;
    case Cause::kHang:
      return restart.hang;
    case Cause::kNodeLost:
      return restart.node_lost;
    case Cause::kUnknown:
      return restart.unknown;
    case Cause::kPreemption:
      break;
  }
  return std::nullopt;
}

std::string_view BudgetField(Cause cause) {
  switch (cause) {
    case Cause::kCode:
      return "code";
    case Cause::kOutOfMemory:
      return "outOfMemory";
    case Cause::kHardware:
      return "hardware";
    case Cause::kHang:
      return "hang";
    case Cause::kNodeLost:
      return "nodeLost";
    case Cause::kUnknown:
      return "unknown";
    case Cause::kPreemption:
      break;
  }
  return "";
}

int CountWithin(const std::vector<training::v1alpha1::Incident>& recent, Cause cause,
                Duration window, Time now) {
  return static_cast<int>(std::count_if(recent.begin(), recent.end(), [&](const auto& incident) {
    return incident.cause == ToString(cause) && Within(incident, window, now);
  }));
}

void Prune(std::vector<training::v1alpha1::Incident>& recent, Duration window, Time now) {
  std::size_t drop = recent.size() > kMostKept ? recent.size() - kMostKept : 0;
  while (recent.size() - drop > kAlwaysKept && !Within(recent[drop], window, now)) ++drop;
  recent.erase(recent.begin(), recent.begin() + static_cast<std::ptrdiff_t>(drop));
}

}  // namespace ringmaster::reconcile

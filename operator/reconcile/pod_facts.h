// What reconcile needs to know of a pod, read once from the object.
#ifndef RINGMASTER_OPERATOR_RECONCILE_POD_FACTS_H_
#define RINGMASTER_OPERATOR_RECONCILE_POD_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"

namespace ringmaster::reconcile {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

struct PodFacts {
  std::string name;
  std::string uid;
  int index = -1;              // -1: the label is missing or no number
  int incarnation = -1;        // likewise
  std::int64_t incidents = 0;  // kAnnotationIncidents
  // Once the worker's container has ended its exit code decides, whatever others do or did (a
  // sidecar of a service mesh runs on, and is killed in the end), unless the pod was being stopped.
  PodPhase phase = PodPhase::kPending;
  bool others_run = false;  // the worker's container has ended, the pod has not
  bool deleting = false;

  // The container that decides: the worker's once it has ended, else the first that failed, else
  // the first of the pod.
  std::optional<int> exit_code;
  std::string exit_reason;   // "OOMKilled", "Error", "StartError"
  std::string exit_message;  // the termination message
  std::optional<Time> finished_at;
  std::optional<Time> started_at;
  std::string waiting_reason;  // "ImagePullBackOff"
  std::string waiting_message;

  // The pod as a whole.
  std::string reason;      // status.reason: "Evicted", "NodeLost"
  std::string message;     // status.message
  std::string disruption;  // the reason of a true DisruptionTarget condition
  std::string disruption_message;
  std::string unschedulable;  // the scheduler's words, while it finds no node
  std::string node;
  std::string group;  // the pod group that it has joined

  bool Terminal() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool Running() const { return phase == PodPhase::kRunning && !deleting; }

  bool operator==(const PodFacts&) const = default;
};

// `worker`: the name of the container in which the launcher runs.
PodFacts ReadPod(const nlohmann::json& pod, std::string_view worker);

// Whether ReadPod looks at this one of a pod's conditions.
bool ReadsCondition(const nlohmann::json& condition);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_POD_FACTS_H_

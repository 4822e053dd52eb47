#include "operator/node/local_pod.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace ringmaster::node {
namespace {

using kube::Json;

constexpr Duration kFirstRestartDelay = std::chrono::seconds(10);
constexpr Duration kLongestRestartDelay = std::chrono::minutes(5);

Json TerminatedState(const Termination& ended) {
  Json state = {{"exitCode", ended.exit.exit_code},
                {"reason", ended.exit.exit_code == 0 ? "Completed" : "Error"},
                {"startedAt", FormatTime(ended.started)},
                {"finishedAt", FormatTime(ended.finished)}};
  if (ended.exit.signal != 0) state["signal"] = ended.exit.signal;
  if (!ended.message.empty()) state["message"] = ended.message;
  return {{"terminated", state}};
}

bool WillRestart(const LocalPod& pod, const LocalContainer& container) {
  return !pod.kill_at && WantsRestart(pod.plan.restart_policy, container);
}

Json CurrentState(const LocalPod& pod, const LocalContainer& container) {
  if (container.running()) return {{"running", {{"startedAt", FormatTime(container.started)}}}};
  if (container.ended) {
    if (!WillRestart(pod, container)) return TerminatedState(*container.ended);
    return {{"waiting", {{"reason", "CrashLoopBackOff"}, {"message", container.ended->message}}}};
  }
  return {{"waiting",
           {{"reason", container.start_error ? "CreateContainerError" : "ContainerCreating"},
            {"message", container.start_error.value_or("")}}}};
}

Json ContainerStatus(const LocalPod& pod, const LocalContainer& container) {
  Json status = {{"name", container.plan.name},
                 {"image", container.plan.image},
                 {"imageID", ""},
                 {"ready", container.running()},
                 {"started", container.running()},
                 {"restartCount", container.restarts},
                 {"state", CurrentState(pod, container)}};
  if (container.ended && (container.running() || WillRestart(pod, container))) {
    status["lastState"] = TerminatedState(*container.ended);
  }
  return status;
}

// Running until every container has ended for good; then Failed if any failed.
std::string Phase(const LocalPod& pod) {
  const auto over = [&](const LocalContainer& c) {
    return !c.running() && c.ended && !WillRestart(pod, c);
  };
  const auto failed = [](const LocalContainer& c) {
    return c.ended && c.ended->exit.exit_code != 0;
  };
  if (!std::ranges::all_of(pod.containers, over)) {
    const bool begun =
        std::ranges::any_of(pod.containers, [](const auto& c) { return c.running() || c.ended; });
    return begun ? "Running" : "Pending";
  }
  return std::ranges::any_of(pod.containers, failed) ? "Failed" : "Succeeded";
}

Json Condition(const std::string& type, bool value, Time since, const std::string& reason = "",
               const std::string& message = "") {
  Json condition = {{"type", type},
                    {"status", value ? "True" : "False"},
                    {"lastTransitionTime", FormatTime(since)}};
  if (!reason.empty()) condition["reason"] = reason;
  if (!message.empty()) condition["message"] = message;
  return condition;
}

Time LastChange(const LocalPod& pod) {
  Time last = pod.started;
  for (const LocalContainer& container : pod.containers) {
    if (container.running()) last = std::max(last, container.started);
    if (!container.running() && container.ended) last = std::max(last, container.ended->finished);
  }
  return last;
}

}  // namespace

bool LocalPod::AnyRunning() const {
  return std::ranges::any_of(containers, [](const LocalContainer& c) { return c.running(); });
}

Duration RestartDelay(int restarts) {
  if (restarts == 0) return Duration::zero();
  Duration delay = kFirstRestartDelay;
  for (int i = 1; i < restarts && delay < kLongestRestartDelay; ++i) delay *= 2;
  return std::min(delay, kLongestRestartDelay);
}

bool WantsRestart(RestartPolicy policy, const LocalContainer& container) {
  if (policy == RestartPolicy::kNever || !container.ended) return false;
  return policy == RestartPolicy::kAlways || container.ended->exit.exit_code != 0;
}

Json StatusOf(const LocalPod& pod, const std::string& host_ip) {
  const bool ready = std::ranges::all_of(pod.containers, [](const auto& c) { return c.running(); });
  Json statuses = Json::array();
  for (const LocalContainer& container : pod.containers)
    statuses.push_back(ContainerStatus(pod, container));
  return {{"phase", Phase(pod)},
          {"hostIP", host_ip},
          {"podIP", pod.ip},
          {"podIPs", Json::array({{{"ip", pod.ip}}})},
          {"startTime", FormatTime(pod.started)},
          {"conditions", Json::array({Condition("PodScheduled", true, pod.started),
                                      Condition("Initialized", true, pod.started),
                                      Condition("ContainersReady", ready, LastChange(pod)),
                                      Condition("Ready", ready, LastChange(pod))})},
          {"containerStatuses", statuses}};
}

Json RefusedStatus(const std::string& phase, const std::string& reason,
                   const std::string& message) {
  return {{"phase", phase}, {"reason", reason}, {"message", message}};
}

Json WaitingStatus(const std::string& condition, const std::string& reason,
                   const std::string& message, Time now) {
  return {{"phase", "Pending"},
          {"conditions", Json::array({Condition(condition, false, now, reason, message)})}};
}

}  // namespace ringmaster::node

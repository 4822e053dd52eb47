// A pod as this machine runs it, and the status that a kubelet would report of it.
//
// Plain values without a thread or a clock of their own; the agent guards them.
#ifndef RINGMASTER_OPERATOR_NODE_LOCAL_POD_H_
#define RINGMASTER_OPERATOR_NODE_LOCAL_POD_H_

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include "common/clock.h"
#include "operator/kube/types.h"
#include "operator/node/pod_plan.h"

namespace ringmaster::node {

struct Termination {
  ProcessExit exit;
  Time started;
  Time finished;
  std::string message;  // the last lines of the log, where it failed
};

struct LocalContainer {
  ContainerPlan plan;
  pid_t pid = 0;                           // 0 unless it runs
  Time started;                            // of the current or last run
  std::optional<Termination> ended;        // the last run's end
  std::optional<std::string> start_error;  // why it could not be started
  int restarts = 0;

  bool running() const { return pid != 0; }
};

struct LocalPod {
  kube::ObjectKey key;
  std::string uid;
  std::string ip;
  PodPlan plan;
  Time started;
  std::vector<LocalContainer> containers;
  std::optional<SteadyTime> kill_at;  // set once it was told to stop
  bool killed = false;

  bool AnyRunning() const;
};

// How long to wait before a container that ended is started again: none before the first, then 10 s
// doubled each time, to 5 minutes (a kubelet's crash-loop back-off).
Duration RestartDelay(int restarts);

// Whether a container that ended so is to be started again.
bool WantsRestart(RestartPolicy policy, const LocalContainer& container);

// The pod's status subresource. `host_ip` is the node's address.
kube::Json StatusOf(const LocalPod& pod, const std::string& host_ip);

// Status of a pod that does not run here: a phase, and why.
kube::Json RefusedStatus(const std::string& phase, const std::string& reason,
                         const std::string& message);

// Status of a pod that waits for the machine's resources or for an object that it refers to.
kube::Json WaitingStatus(const std::string& condition, const std::string& reason,
                         const std::string& message, Time now);

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_LOCAL_POD_H_

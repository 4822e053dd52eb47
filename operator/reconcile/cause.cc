#include "operator/reconcile/cause.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "common/contract.h"

namespace ringmaster::reconcile {
namespace {

struct NamedCause {
  std::string_view reason;
  Cause cause;
};

// status.reason of a pod, and the reasons of its DisruptionTarget condition.
constexpr NamedCause kPodReasons[] = {
    {"NodeLost", Cause::kNodeLost},
    {"DeletionByTaintManager", Cause::kNodeLost},
    {"DeletionByPodGC", Cause::kNodeLost},
    {"Evicted", Cause::kPreemption},
    {"Preempting", Cause::kPreemption},
    {"PreemptionByScheduler", Cause::kPreemption},
    {"PreemptionByKubeScheduler", Cause::kPreemption},
    {"EvictionByEvictionAPI", Cause::kPreemption},
    {"TerminationByKubelet", Cause::kPreemption},
    {"Shutdown", Cause::kPreemption},
    {"Terminated", Cause::kPreemption},
};

// status.reason of a pod that a kubelet has not admitted, so that nothing of it ran: the scheduler
// knew less of the node than the kubelet, and chooses again. What the template itself cannot have
// anywhere (SysctlForbidden, PodOSNotSupported) is not here.
constexpr NamedCause kRefusals[] = {
    {"NodeAffinity", Cause::kPreemption},
    {"NodeName", Cause::kPreemption},
    {"NodePorts", Cause::kPreemption},
    {"TaintToleration", Cause::kPreemption},
    {"NodeShutdown", Cause::kPreemption},
    {"InvalidNodeInfo", Cause::kPreemption},
    {"TopologyAffinityError", Cause::kPreemption},
    {"UnexpectedPredicateFailureType", Cause::kPreemption},
    {"UnexpectedAdmissionError", Cause::kHardware},  // a device plugin gives nothing
};
// OutOfcpu, OutOfmemory, OutOfpods, OutOfephemeral-storage, OutOfnvidia.com/gpu.
constexpr std::string_view kOutOf = "OutOf";

constexpr NamedCause kContainerReasons[] = {
    {"OOMKilled", Cause::kOutOfMemory},
    {"ContainerStatusUnknown", Cause::kNodeLost},
};

std::optional<Cause> Lookup(const auto& table, std::string_view reason) {
  for (const NamedCause& entry : table) {
    if (entry.reason == reason) return entry.cause;
  }
  return std::nullopt;
}

std::optional<Cause> CauseOfRefusal(std::string_view reason) {
  return reason.starts_with(kOutOf) ? Cause::kPreemption : Lookup(kRefusals, reason);
}

// The words of others go into the middle of a sentence of ours.
std::string WithWords(std::string text, std::string words) {
  while (words.ends_with('.') || words.ends_with('\n')) words.pop_back();
  return words.empty() ? text : fmt::format("{}: {}", text, words);
}

// The container never ran: its command does not exist, or may not be executed.
bool NeverStarted(const PodFacts& pod) {
  return pod.exit_reason == "StartError" || pod.exit_reason == "ContainerCannotRun";
}

std::string_view SignalName(int signal) {
  switch (signal) {
    case SIGINT:
      return " (SIGINT)";
    case SIGILL:
      return " (SIGILL)";
    case SIGABRT:
      return " (SIGABRT)";
    case SIGBUS:
      return " (SIGBUS)";
    case SIGFPE:
      return " (SIGFPE)";
    case SIGKILL:
      return " (SIGKILL)";
    case SIGSEGV:
      return " (SIGSEGV)";
    case SIGTERM:
      return " (SIGTERM)";
    default:
      return "";
  }
}

Cause CauseOfSignal(int signal) {
  switch (signal) {
    case SIGILL:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
      return Cause::kCode;
    case SIGINT:
    case SIGTERM:
      return Cause::kPreemption;  // somebody asked it to go
    default:
      return Cause::kUnknown;
  }
}

std::string_view Meaning(int code) {
  switch (code) {
    case contract::kExitUsage:
      return " (bad flags)";
    case contract::kExitBadConfig:
      return " (bad configuration)";
    case contract::kExitBadData:
      return " (bad data)";
    case contract::kExitBadModel:
      return " (bad model)";
    case contract::kExitDiverged:
      return " (the loss is not finite)";
    case contract::kExitInternal:
      return " (internal error)";
    case contract::kExitNoResource:
      return " (out of memory or disk)";
    case contract::kExitPeerLost:
      return " (a peer was lost)";
    default:
      return "";
  }
}

void JudgeExit(int code, bool native, Verdict& verdict) {
  verdict.exit_code = code;
  if (code > 128 && code < 128 + 65) {
    const int signal = code - 128;
    verdict.cause = CauseOfSignal(signal);
    verdict.what = fmt::format("was ended by signal {}{}", signal, SignalName(signal));
    return;
  }
  verdict.what = fmt::format("ended with exit code {}{}", code, native ? Meaning(code) : "");
  verdict.cause = Cause::kCode;
  if (!native) return;
  verdict.permanent = contract::IsPermanent(code);
  verdict.consequence = code == contract::kExitPeerLost;
  if (code == contract::kExitNoResource) verdict.cause = Cause::kOutOfMemory;
  if (verdict.consequence) verdict.cause = Cause::kUnknown;
}

// The launcher has seen what the exit does not say.
void JudgeOutOfMemory(Verdict& verdict) {
  verdict.cause = Cause::kOutOfMemory;
  verdict.what = "ran out of memory (its container has reached its limit)";
}

// The local node does not know something that the template asks for.
bool NeverSupported(const PodFacts& pod) {
  return pod.reason == "Unsupported";
}

// What the cluster or the container runtime says; false when they say nothing.
bool JudgePod(const PodFacts& pod, Verdict& verdict) {
  verdict.exit_code = pod.exit_code;
  if (const auto cause = Lookup(kPodReasons, pod.disruption)) {
    verdict.cause = *cause;
    verdict.what = WithWords("was disrupted, " + pod.disruption, pod.disruption_message);
    return true;
  }
  if (const auto cause = Lookup(kPodReasons, pod.reason)) {
    verdict.cause = *cause;
    verdict.what = WithWords("was stopped, " + pod.reason, pod.message);
    return true;
  }
  if (const auto cause = CauseOfRefusal(pod.reason)) {
    verdict.cause = *cause;
    verdict.what = WithWords("was refused by its node, " + pod.reason, pod.message);
    return true;
  }
  if (const auto cause = Lookup(kContainerReasons, pod.exit_reason)) {
    verdict.cause = *cause;
    verdict.what = *cause == Cause::kOutOfMemory
                       ? "ran out of memory (OOMKilled)"
                       : "was lost with its node (" + pod.exit_reason + ")";
    return true;
  }
  if (NeverStarted(pod) || NeverSupported(pod)) {
    verdict.cause = Cause::kCode;
    verdict.permanent = true;
    verdict.what =
        WithWords("could not be started", NeverStarted(pod) ? pod.exit_message : pod.message);
    return true;
  }
  if (pod.phase == PodPhase::kUnknown) {
    verdict.cause = Cause::kNodeLost;
    verdict.what = fmt::format("is out of reach on node {}", pod.node);
    return true;
  }
  return false;
}

std::optional<int> ExitCodeOf(const PodFacts* pod, const WorkerView* view) {
  if (view != nullptr && view->exited) return view->exited->exit_code;
  return pod == nullptr ? std::nullopt : pod->exit_code;
}

// Whoever was asked to leave has left for that, however the leaving went; but what a restart would
// not mend is not excused by it.
void ExcuseLeaver(const WorkerView* view, Verdict& verdict) {
  if (view == nullptr || !view->drain_requested || verdict.permanent) return;
  verdict.cause = Cause::kPreemption;
  verdict.consequence = false;
  verdict.what = view->drained_step
                     ? fmt::format("was asked to leave, and did after step {}", *view->drained_step)
                     : "was asked to leave and " + verdict.what;
}

}  // namespace

std::string_view ToString(Cause cause) {
  switch (cause) {
    case Cause::kCode:
      return "Code";
    case Cause::kOutOfMemory:
      return "OutOfMemory";
    case Cause::kHardware:
      return "Hardware";
    case Cause::kHang:
      return "Hang";
    case Cause::kPreemption:
      return "Preemption";
    case Cause::kNodeLost:
      return "NodeLost";
    case Cause::kUnknown:
      break;
  }
  return "Unknown";
}

Verdict Classify(const PodFacts* pod, const WorkerView* view, bool native) {
  Verdict verdict;
  if (view != nullptr && view->exited) verdict.log = view->exited->message;
  if (verdict.log.empty() && pod != nullptr && !NeverStarted(*pod)) verdict.log = pod->exit_message;
  if (pod != nullptr && JudgePod(*pod, verdict)) return verdict;

  const std::optional<int> code = ExitCodeOf(pod, view);
  const bool going = pod == nullptr || pod->deleting;
  if (code.value_or(0) != 0 && !going) {
    JudgeExit(*code, native, verdict);
    if (view != nullptr && view->exited && view->exited->out_of_memory) JudgeOutOfMemory(verdict);
  } else if (going) {
    verdict.cause = Cause::kPreemption;
    verdict.exit_code = code;
    verdict.what = "was deleted";
  } else if (pod->phase == PodPhase::kSucceeded || code == 0) {
    verdict.cause = Cause::kPreemption;
    verdict.exit_code = 0;
    verdict.what = "left before the training was over";
  } else if (pod->phase == PodPhase::kFailed) {
    verdict.what = WithWords("failed without an exit code", pod->message);
  } else {
    verdict.cause = Cause::kHang;
    verdict.what = view != nullptr && view->connected
                       ? "hangs: its launcher is there, but its peers hear nothing of its trainer"
                       : "went silent";
  }
  ExcuseLeaver(view, verdict);
  return verdict;
}

}  // namespace ringmaster::reconcile

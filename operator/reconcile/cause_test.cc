#include "operator/reconcile/cause.h"

#include <gtest/gtest.h>

namespace ringmaster::reconcile {
namespace {

PodFacts Failed(int code, const std::string& reason = "Error") {
  PodFacts pod;
  pod.phase = PodPhase::kFailed;
  pod.exit_code = code;
  pod.exit_reason = reason;
  return pod;
}

Cause CauseOf(const PodFacts& pod) {
  return Classify(&pod, nullptr, true).cause;
}

TEST(CauseTest, TellsSignalsApart) {
  EXPECT_EQ(CauseOf(Failed(139)), Cause::kCode);
  EXPECT_EQ(CauseOf(Failed(134)), Cause::kCode);
  EXPECT_EQ(CauseOf(Failed(137)), Cause::kUnknown);
  EXPECT_EQ(CauseOf(Failed(130)), Cause::kPreemption);
  EXPECT_EQ(CauseOf(Failed(143)), Cause::kPreemption);
}

TEST(CauseTest, BelievesThePodBeforeItsExitCode) {
  EXPECT_EQ(CauseOf(Failed(137, "OOMKilled")), Cause::kOutOfMemory);
  PodFacts pod = Failed(66);
  pod.disruption = "EvictionByEvictionAPI";
  const Verdict verdict = Classify(&pod, nullptr, true);
  EXPECT_EQ(verdict.cause, Cause::kPreemption);
  EXPECT_FALSE(verdict.permanent);
  pod = Failed(137);
  pod.reason = "NodeLost";
  EXPECT_EQ(CauseOf(pod), Cause::kNodeLost);
}

TEST(CauseTest, TakesAPodThatItsNodeDoesNotAdmitForPreemption) {
  PodFacts pod;
  pod.phase = PodPhase::kFailed;
  for (const char* reason : {"OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage",
                             "OutOfnvidia.com/gpu", "NodeAffinity", "NodeName", "NodePorts",
                             "TaintToleration", "NodeShutdown", "TopologyAffinityError"}) {
    pod.reason = reason;
    EXPECT_EQ(CauseOf(pod), Cause::kPreemption) << reason;
  }
  pod.reason = "OutOfcpu";
  pod.message = "Pod was rejected: Node didn't have enough resource: cpu";
  EXPECT_EQ(Classify(&pod, nullptr, true).what,
            "was refused by its node, OutOfcpu: Pod was rejected: Node didn't have enough "
            "resource: cpu");
  pod.reason = "UnexpectedAdmissionError";
  EXPECT_EQ(CauseOf(pod), Cause::kHardware);
  pod.reason = "SysctlForbidden";
  EXPECT_EQ(CauseOf(pod), Cause::kUnknown) << "another node forbids it, too";
}

TEST(CauseTest, TakesWhatAKubeletStopsForItsOwnReasonsForPreemption) {
  PodFacts pod = Failed(137);
  for (const char* reason : {"Terminated", "Shutdown", "Evicted", "Preempting"}) {
    pod.reason = reason;
    EXPECT_EQ(CauseOf(pod), Cause::kPreemption) << reason;
  }
}

TEST(CauseTest, BelievesTheLauncherThatTheKernelKilledForWantOfMemory) {
  const PodFacts pod = Failed(137);
  WorkerView view;
  view.exited = ExitReport{.exit_code = 137, .message = "step 7", .out_of_memory = true};
  for (const bool native : {false, true}) {
    const Verdict verdict = Classify(&pod, &view, native);
    EXPECT_EQ(verdict.cause, Cause::kOutOfMemory);
    EXPECT_FALSE(verdict.permanent);
    EXPECT_EQ(verdict.what, "ran out of memory (its container has reached its limit)");
    EXPECT_EQ(verdict.log, "step 7");
  }
}

TEST(CauseTest, KnowsThePermanentCodesOfTheNativeTrainerAlone) {
  const PodFacts pod = Failed(66);
  EXPECT_TRUE(Classify(&pod, nullptr, true).permanent);
  EXPECT_FALSE(Classify(&pod, nullptr, false).permanent);
}

TEST(CauseTest, CallsACommandThatDoesNotExistPermanent) {
  PodFacts pod = Failed(128, "StartError");
  pod.exit_message = "exec: no such file.";
  const Verdict verdict = Classify(&pod, nullptr, false);
  EXPECT_TRUE(verdict.permanent);
  EXPECT_EQ(verdict.what, "could not be started: exec: no such file");
}

TEST(CauseTest, CallsWhatTheNodeDoesNotSupportPermanent) {
  PodFacts pod;
  pod.phase = PodPhase::kFailed;
  pod.reason = "Unsupported";
  pod.message = "spec.initContainers: not supported";
  const Verdict verdict = Classify(&pod, nullptr, true);
  EXPECT_TRUE(verdict.permanent);
  EXPECT_EQ(verdict.what, "could not be started: spec.initContainers: not supported");
}

TEST(CauseTest, TakesTheEndOfAWorkerThatWasAskedToLeaveForPreemption) {
  const PodFacts pod = Failed(75);
  WorkerView view;
  view.drain_requested = Time();
  const Verdict verdict = Classify(&pod, &view, true);
  EXPECT_EQ(verdict.cause, Cause::kPreemption);
  EXPECT_FALSE(verdict.consequence);
  EXPECT_EQ(verdict.what, "was asked to leave and ended with exit code 75 (a peer was lost)");
  view.drained_step = 123;
  EXPECT_EQ(Classify(&pod, &view, true).what, "was asked to leave, and did after step 123");
}

TEST(CauseTest, CallsALostPeerAConsequence) {
  const PodFacts pod = Failed(75);
  EXPECT_TRUE(Classify(&pod, nullptr, true).consequence);
}

TEST(CauseTest, TakesTheLaunchersWordsBeforeTheContainers) {
  PodFacts pod = Failed(1);
  pod.exit_message = "from the container";
  WorkerView view;
  view.exited = ExitReport{.exit_code = 3, .message = "from the launcher"};
  const Verdict verdict = Classify(&pod, &view, true);
  EXPECT_EQ(verdict.exit_code, 3);
  EXPECT_EQ(verdict.log, "from the launcher");
}

TEST(CauseTest, CallsSilenceAHangAndAbsenceADeletion) {
  PodFacts pod;
  pod.phase = PodPhase::kRunning;
  EXPECT_EQ(CauseOf(pod), Cause::kHang);
  EXPECT_EQ(Classify(nullptr, nullptr, true).cause, Cause::kPreemption);
}

}  // namespace
}  // namespace ringmaster::reconcile

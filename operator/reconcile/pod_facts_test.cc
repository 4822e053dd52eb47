#include "operator/reconcile/pod_facts.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::reconcile {
namespace {

TEST(PodFactsTest, ReadsTheContainerThatFailedBeforeTheOthers) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Failed", "containerStatuses": [
      {"name": "a", "state": {"terminated": {"exitCode": 0}}},
      {"name": "b", "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no",
                                             "finishedAt": "2026-01-01T00:00:05Z"}}}]}})");
  const PodFacts facts = ReadPod(pod, "worker");
  EXPECT_EQ(facts.phase, PodPhase::kFailed);
  EXPECT_EQ(facts.exit_code, 3);
  EXPECT_EQ(facts.exit_message, "no");
  EXPECT_EQ(FormatTime(facts.finished_at.value()), "2026-01-01T00:00:05Z");
}

TEST(PodFactsTest, ReadsAnInitContainerThatWaits) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Pending",
      "initContainerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
      "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}})");
  EXPECT_EQ(ReadPod(pod, "worker").waiting_reason, "ImagePullBackOff");
}

nlohmann::json WithSidecar(const char* phase, int worker, const char* sidecar) {
  auto pod = nlohmann::json::parse(R"({"status": {"containerStatuses": [{"name": "istio-proxy"},
      {"name": "main", "state": {"terminated": {"message": "mine"}}}]}})");
  pod["status"]["phase"] = phase;
  pod["status"]["containerStatuses"][0]["state"] = nlohmann::json::parse(sidecar);
  pod["status"]["containerStatuses"][1]["state"]["terminated"]["exitCode"] = worker;
  return pod;
}
constexpr char kRuns[] = R"({"running": {}})";
constexpr char kKilled[] = R"({"terminated": {"exitCode": 137}})";

TEST(PodFactsTest, BelievesTheWorkersContainerWhateverItsSidecarDoes) {
  const PodFacts well = ReadPod(WithSidecar("Running", 0, kRuns), "main");
  EXPECT_EQ(well.phase, PodPhase::kSucceeded);
  EXPECT_TRUE(well.others_run);
  const PodFacts badly = ReadPod(WithSidecar("Running", 3, kKilled), "main");
  EXPECT_EQ(badly.phase, PodPhase::kFailed);
  EXPECT_EQ(badly.exit_code, 3);
  EXPECT_EQ(badly.exit_message, "mine");
  const PodFacts over = ReadPod(WithSidecar("Failed", 0, kKilled), "main");
  EXPECT_EQ(over.phase, PodPhase::kSucceeded);
  EXPECT_EQ(over.exit_code, 0);
  EXPECT_FALSE(over.others_run);
}

TEST(PodFactsTest, BelievesNoWorkerThatWasStopped) {
  auto pod = WithSidecar("Failed", 0, kKilled);
  pod["status"]["reason"] = "Evicted";
  EXPECT_EQ(ReadPod(pod, "main").phase, PodPhase::kFailed);
  pod = WithSidecar("Running", 0, kRuns);
  pod["status"]["conditions"] = {
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "x"}}};
  EXPECT_EQ(ReadPod(pod, "main").phase, PodPhase::kRunning);
  pod = WithSidecar("Running", 0, kRuns);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:05Z";
  EXPECT_EQ(ReadPod(pod, "main").phase, PodPhase::kRunning);
}

TEST(PodFactsTest, TakesNoSidecarForTheWorker) {
  auto pod = WithSidecar("Running", 0, kKilled);
  pod["status"]["containerStatuses"][1]["state"] = nlohmann::json::parse(kRuns);
  EXPECT_EQ(ReadPod(pod, "main").phase, PodPhase::kRunning);
}

TEST(PodFactsTest, ReadsTheWorkerWhateverBecameOfASidecarThatEndedWithIt) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Failed",
      "initContainerStatuses": [{"state": {"terminated": {"exitCode": 143}}}],
      "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}})");
  EXPECT_EQ(ReadPod(pod, "worker").exit_code, 3);
  const auto runs = nlohmann::json::parse(R"({"status": {"phase": "Running",
      "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
      "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}]}})");
  EXPECT_EQ(ReadPod(runs, "worker").waiting_reason, "");
  EXPECT_TRUE(ReadPod(runs, "worker").started_at.has_value());
}

TEST(PodFactsTest, ReadsAnInitContainerThatFailed) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Failed",
      "initContainerStatuses": [{"state": {"terminated": {"exitCode": 2}}}],
      "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}})");
  EXPECT_EQ(ReadPod(pod, "worker").exit_code, 2);
}

TEST(PodFactsTest, TakesAPodWithoutLabelsOrStatusForNobodys) {
  const PodFacts facts =
      ReadPod(nlohmann::json::parse(
                  R"({"metadata": {"labels": {"training.ringmaster.dev/index": "one"}}})"),
              "worker");
  EXPECT_EQ(facts.index, -1);
  EXPECT_EQ(facts.incarnation, -1);
  EXPECT_EQ(facts.phase, PodPhase::kPending);
}

}  // namespace
}  // namespace ringmaster::reconcile

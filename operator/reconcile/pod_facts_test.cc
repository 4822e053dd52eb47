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
  const PodFacts facts = ReadPod(pod);
  EXPECT_EQ(facts.phase, PodPhase::kFailed);
  EXPECT_EQ(facts.exit_code, 3);
  EXPECT_EQ(facts.exit_message, "no");
  EXPECT_EQ(FormatTime(facts.finished_at.value()), "2026-01-01T00:00:05Z");
}

TEST(PodFactsTest, ReadsAnInitContainerThatWaits) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Pending",
      "initContainerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
      "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}})");
  EXPECT_EQ(ReadPod(pod).waiting_reason, "ImagePullBackOff");
}

TEST(PodFactsTest, ReadsTheWorkerWhateverBecameOfASidecarThatEndedWithIt) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Failed",
      "initContainerStatuses": [{"state": {"terminated": {"exitCode": 143}}}],
      "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}})");
  EXPECT_EQ(ReadPod(pod).exit_code, 3);
  const auto runs = nlohmann::json::parse(R"({"status": {"phase": "Running",
      "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
      "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}]}})");
  EXPECT_EQ(ReadPod(runs).waiting_reason, "");
  EXPECT_TRUE(ReadPod(runs).started_at.has_value());
}

TEST(PodFactsTest, ReadsAnInitContainerThatFailed) {
  const auto pod = nlohmann::json::parse(R"({"status": {"phase": "Failed",
      "initContainerStatuses": [{"state": {"terminated": {"exitCode": 2}}}],
      "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]}})");
  EXPECT_EQ(ReadPod(pod).exit_code, 2);
}

TEST(PodFactsTest, TakesAPodWithoutLabelsOrStatusForNobodys) {
  const PodFacts facts = ReadPod(nlohmann::json::parse(
      R"({"metadata": {"labels": {"training.ringmaster.dev/index": "one"}}})"));
  EXPECT_EQ(facts.index, -1);
  EXPECT_EQ(facts.incarnation, -1);
  EXPECT_EQ(facts.phase, PodPhase::kPending);
}

}  // namespace
}  // namespace ringmaster::reconcile

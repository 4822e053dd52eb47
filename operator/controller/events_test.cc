#include "operator/controller/events.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::controller {
namespace {

using kube::Json;
using kube::kEvent;
using kube::kTrainingJob;

class EventRecorderTest : public ::testing::Test {
 protected:
  std::vector<kube::ObjectPtr> Events() { return store_->List(kEvent, "ns", {})->items; }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      *kube::memory::MemoryStore::Open({.clock = &clock_});
  kube::testing::FaultClient client_{*store_};
  EventRecorder recorder_{client_, clock_, "ringmaster-operator"};
  Json job_ = *store_->Create(kTrainingJob, kube::NewObject(kTrainingJob, {"ns", "digits"}));
};

TEST_F(EventRecorderTest, AnEventNamesItsObjectReasonAndReporter) {
  ASSERT_TRUE(
      recorder_
          .Record(kTrainingJob, job_, {EventType::kWarning, "WorkerLost", "worker 2 was killed"})
          .ok());
  ASSERT_EQ(Events().size(), 1u);
  const Json& event = *Events()[0];
  EXPECT_EQ(event["involvedObject"]["uid"], kube::Uid(job_));
  EXPECT_EQ(event["involvedObject"]["kind"], "TrainingJob");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "WorkerLost");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"]["component"], "ringmaster-operator");
  EXPECT_EQ(event["firstTimestamp"], "2026-01-01T00:00:00Z");
}

TEST_F(EventRecorderTest, TheSameHappeningIsCountedAlsoByASuccessor) {
  const EventNote note{EventType::kNormal, "PodCreated", "made digits-0-0"};
  ASSERT_TRUE(recorder_.Record(kTrainingJob, job_, note).ok());
  clock_.Advance(std::chrono::seconds(5));
  EventRecorder successor(client_, clock_, "ringmaster-operator");
  ASSERT_TRUE(successor.Record(kTrainingJob, job_, note).ok());
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ((*Events()[0])["count"], 2);
  EXPECT_EQ((*Events()[0])["firstTimestamp"], "2026-01-01T00:00:00Z");
  EXPECT_EQ((*Events()[0])["lastTimestamp"], "2026-01-01T00:00:05Z");
}

TEST_F(EventRecorderTest, AnotherMessageIsAnotherEvent) {
  ASSERT_TRUE(
      recorder_.Record(kTrainingJob, job_, {EventType::kNormal, "PodCreated", "made digits-0-0"})
          .ok());
  ASSERT_TRUE(
      recorder_.Record(kTrainingJob, job_, {EventType::kNormal, "PodCreated", "made digits-1-0"})
          .ok());
  EXPECT_EQ(Events().size(), 2u);
}

TEST_F(EventRecorderTest, CountingSurvivesAConflict) {
  const EventNote note{EventType::kNormal, "PodCreated", "made digits-0-0"};
  ASSERT_TRUE(recorder_.Record(kTrainingJob, job_, note).ok());
  client_.FailNext({.verb = kube::testing::Verb::kPatch}, absl::AbortedError("conflict"));
  ASSERT_TRUE(recorder_.Record(kTrainingJob, job_, note).ok());
  EXPECT_EQ((*Events()[0])["count"], 2);
}

TEST_F(EventRecorderTest, ALongMessageIsCutBetweenCharacters) {
  std::string message;
  for (int i = 0; i < 600; ++i) message += "\u00e9";
  message = "x" + message;
  ASSERT_TRUE(recorder_.Record(kTrainingJob, job_, {EventType::kNormal, "Long", message}).ok());
  EXPECT_EQ((*Events()[0])["message"].get<std::string>().size(), 1023u);
}

}  // namespace
}  // namespace ringmaster::controller

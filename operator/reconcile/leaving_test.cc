#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using namespace reconcile::testing;

// The worker of an index has ended with this code, and waits to be let go.
WorkerView& End(Observed& observed, int index, int code = 0) {
  WorkerView& view = View(observed, index);
  view.exited = ExitReport{.exit_code = code, .time = observed.now};
  view.connected = false;
  view.disconnected_at = observed.now;
  view.leaving = true;
  return view;
}

void Finish(Observed& observed, int index) {
  View(observed, index).finished = FinishedReport{.round = 1, .weights_sha256 = "5f1c"};
}

void Write(Observed& observed, int index, std::int64_t step) {
  View(observed, index).durable.push_back({.round = 1, .step = step, .digest = "d"});
}

std::string UidOf(Observed& observed, int index) {
  return View(observed, index).pod_uid;
}

TEST(LeavingTest, NobodyIsLetGoWhoDoesNotWaitForIt) {
  Observed observed = Training(1);
  Finish(observed, 0);
  View(observed, 0).exited = ExitReport{};
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
}

TEST(LeavingTest, AWorkerThatHasFinishedStaysUntilTheResultOfAllIsInTheStatus) {
  Observed observed = Training(2);
  Finish(observed, 0);
  End(observed, 0);
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
  Finish(observed, 1);
  End(observed, 1);
  const Decision decision = Reconcile(observed);
  EXPECT_TRUE(decision.status->result);
  EXPECT_THAT(decision.let_go, UnorderedElementsAre(UidOf(observed, 0), UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatHasFinishedIsNotKeptForOneThatIsLost) {
  Observed observed = Training(2);
  Finish(observed, 0);
  End(observed, 0);
  Exit(observed, 1, 137);
  EXPECT_THAT(Reconcile(observed).let_go, ElementsAre(UidOf(observed, 0)));
}

TEST(LeavingTest, AWorkerThatHasFinishedIsKeptForOneThatANewOperatorHasNotHeardOfYet) {
  Observed observed = Training(2);
  Finish(observed, 0);
  End(observed, 0);
  std::erase_if(observed.workers.workers, [](const WorkerView& view) { return !view.leaving; });
  observed.workers.since = observed.now;
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
}

TEST(LeavingTest, TheOthersNeedNotWaitForMoreThanWorkerZeroWhereItDecides) {
  Observed observed = Training(3);
  observed.job.spec.success_policy = v1::SuccessPolicy::kWorkerZero;
  Finish(observed, 1);
  End(observed, 1);
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
  Finish(observed, 0);
  EXPECT_THAT(Reconcile(observed).let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatWroteItsShardStaysUntilTheCheckpointIsWhole) {
  Observed observed = Training(2);
  Write(observed, 1, 50);
  End(observed, 1).drained_step = 50;
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
  Write(observed, 0, 50);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->checkpoints.front().step, 50);
  EXPECT_THAT(decision.let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatWroteItsShardIsNotKeptForOneThatCouldNot) {
  Observed observed = Training(2);
  Write(observed, 1, 50);
  End(observed, 1).drained_step = 50;
  View(observed, 0)
      .checkpoint_failures.push_back(
          {.round = 1, .step = 50, .message = "No space left on device", .time = observed.now});
  EXPECT_THAT(Reconcile(observed).let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatStaysForTheWordsOfOthersIsNotLostForItsSilence) {
  Observed observed = Training(2);
  Finish(observed, 0);
  End(observed, 0);
  observed.now += 2 * observed.settings.reconnect_timeout;
  View(observed, 1).last_heard = observed.now;
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(observed.job.status->restarts || (decision.status && decision.status->restarts));
  EXPECT_THAT(CreatedPods(decision), IsEmpty());
  EXPECT_THAT(decision.let_go, IsEmpty());
}

TEST(LeavingTest, AWorkerThatFailsAfterTheResultIsNotKept) {
  Observed observed = Training(2);
  observed.job.status->result = v1::TrainingResult{.weights_sha256 = "5f1c"};
  End(observed, 1, 1);
  EXPECT_THAT(Reconcile(observed).let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatHasFailedIsNotKeptFromBeingReplaced) {
  Observed observed = Training(2);
  Write(observed, 1, 50);
  End(observed, 1, 1);
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
  EXPECT_THAT(decision.let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AWorkerThatHasFailedStaysUntilTheIncidentIsInTheStatus) {
  Observed observed = Training(2);
  End(observed, 0, 75);  // a consequence of something that may still show
  EXPECT_THAT(Reconcile(observed).let_go, IsEmpty());
  observed.now += observed.settings.root_cause_wait;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->restarts->total, 1);
  EXPECT_THAT(decision.let_go, ElementsAre(UidOf(observed, 0)));
}

TEST(LeavingTest, AWorkerThatLeftAsItWasAskedIsReplacedBeforeItsPodHasEnded) {
  Observed observed = Training(2);
  View(observed, 1).drain_requested = observed.now;
  End(observed, 1).drained_step = 50;
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
  EXPECT_THAT(decision.status->restarts->by_cause, ElementsAre(Pair("Preemption", 1)));
  EXPECT_THAT(decision.let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, WordsOfARoundThatIsOverKeepNobody) {
  Observed observed = Training(2);
  Write(observed, 1, 50);
  Finish(observed, 1);
  End(observed, 1);
  observed.job.status->round = 2;
  EXPECT_THAT(Reconcile(observed).let_go, ElementsAre(UidOf(observed, 1)));
}

TEST(LeavingTest, AJobThatIsBeingDeletedKeepsNobody) {
  Observed observed = Training(2);
  Finish(observed, 0);
  End(observed, 0);
  observed.job.metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.status);
  EXPECT_THAT(decision.let_go, ElementsAre(UidOf(observed, 0)));
}

}  // namespace
}  // namespace ringmaster::reconcile

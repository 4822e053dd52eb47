#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace reconcile::testing;
using std::chrono::seconds;

TEST(RestartTest, WritesTheIncidentAndTheNextIncarnationBeforeItDeletes) {
  Observed observed = Training(3);
  Exit(observed, 1, 137);
  const Decision decision = Reconcile(observed);
  ASSERT_EQ(decision.status->restarts->recent.size(), 1u);
  EXPECT_EQ(decision.status->restarts->recent[0].round, 1);
  EXPECT_EQ(decision.status->restarts->recent[0].rank, 1);
  EXPECT_EQ(decision.status->restarts->recent[0].exit_code, 137);
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-1-0"));
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
}

TEST(RestartTest, CountsARoundOnceHoweverManyWorkersItLoses) {
  Observed observed = Training(4);
  Exit(observed, 1, 137);
  Exit(observed, 2, 137);
  const Decision first = Reconcile(observed);
  EXPECT_EQ(first.status->restarts->total, 1);
  observed = After(observed, first);
  Exit(observed, 0, 1);
  const Decision second = Reconcile(observed);
  EXPECT_EQ(second.status->restarts->total, 1);
  EXPECT_THAT(CreatedPods(second), ElementsAre("digits-0-1"));
}

TEST(RestartTest, CountsAReplacementThatFallsBeforeItJoins) {
  Observed observed = Training(2);
  Exit(observed, 1, 137);
  observed = After(observed, Reconcile(observed));
  Exit(observed, 1, 1);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->restarts->total, 2);
  EXPECT_THAT(CreatedPods(decision), IsEmpty()) << "it is made anew after a pause";
  EXPECT_EQ(Wait(decision), seconds(1));
}

TEST(RestartTest, NeedsAWorkerAgainThatEndsWellAfterAnotherWasLost) {
  Observed observed = Training(2);
  Exit(observed, 1, 137);
  observed = After(observed, Reconcile(observed));
  View(observed, 0).finished = FinishedReport{.round = 1, .weights_sha256 = "5f1c", .steps = 400};
  Exit(observed, 0, 0);
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-0-1"));
  EXPECT_EQ(decision.status->restarts->total, 1) << "it is no incident of its own";
}

TEST(RestartTest, LetsTheEarliestExitNameTheIncident) {
  Observed observed = Training(3);
  View(observed, 0).exited = ExitReport{.exit_code = 1, .time = observed.now - seconds(1)};
  View(observed, 2).exited = ExitReport{.exit_code = 139, .time = observed.now - seconds(2)};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->restarts->recent[0].pod, "digits-2-0");
}

TEST(RestartTest, NeverLetsAConsequenceNameIt) {
  Observed observed = Training(3);
  View(observed, 0).exited = ExitReport{.exit_code = 75, .time = observed.now - seconds(9)};
  View(observed, 2).exited = ExitReport{.exit_code = 139, .time = observed.now};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->restarts->recent[0].pod, "digits-2-0");
}

TEST(RestartTest, TakesItsOwnDeletionsForNoFailure) {
  Observed observed = Training(2);
  observed.job.spec.workers.replicas = 1;
  observed.job.status->conditions.clear();  // not in a round: nothing to wait for
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-1-0"));
  observed = After(observed, decision);
  EXPECT_FALSE(Reconcile(observed).status->restarts);
}

TEST(RestartTest, KnowsNoPermanentErrorsOfForeignPrograms) {
  Observed observed = Training(1);
  observed.job.spec.trainer.reset();
  observed.job.spec.workers.template_ =
      kube::Json::parse(R"({"spec": {"containers": [{"command": ["x"]}]}})");
  Exit(observed, 0, 66);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "");
}

TEST(RestartTest, EndsTheJobWithTheLastWordsOfTheWorker) {
  Observed observed = Training(2);
  View(observed, 1).exited =
      ExitReport{.exit_code = 66, .message = "digits.csv:17: 63 values", .time = observed.now};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Failed"), "True PermanentError");
  EXPECT_THAT(MessageOf(decision, "Failed"), HasSubstr("Worker 1 (digits-1-0, round 1)"));
  EXPECT_THAT(MessageOf(decision, "Failed"), HasSubstr("digits.csv:17: 63 values"));
  EXPECT_THAT(CreatedPods(decision), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::reconcile

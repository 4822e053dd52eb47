#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace reconcile::testing;
using std::chrono::seconds;

// Worker 1 was asked to leave a second ago.
Observed Asked() {
  Observed observed = Training(2);
  View(observed, 1).drain_requested = observed.now - seconds(1);
  return observed;
}

TEST(DrainTest, SaysOnceWhoWasAskedToLeave) {
  const Observed observed = Asked();
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Draining"), "True WorkerLeaving");
  EXPECT_THAT(MessageOf(decision, "Draining"), HasSubstr("Worker 1 (digits-1-0)"));
  EXPECT_THAT(Events(decision), Contains("WorkerLeaving"));
  EXPECT_EQ(ConditionOf(decision, "Training"), "True RoundStarted") << "the round goes on";
  const Decision again = Reconcile(After(observed, decision));
  EXPECT_EQ(again.status, decision.status);
  EXPECT_THAT(Events(again), Not(Contains("WorkerLeaving")));
}

TEST(DrainTest, ReplacesTheLeaverAndNobodyElseWithoutABudget) {
  Observed observed = Asked();
  observed.job.spec.restart = {.code = 0, .hang = 0, .unknown = 0};
  View(observed, 1).drained_step = 123;
  Exit(observed, 1, 0);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->restarts->by_cause.at("Preemption"), 1);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
  EXPECT_THAT(MessageOf(decision, "Training"), HasSubstr("and did after step 123"));
  EXPECT_EQ(ConditionOf(decision, "Draining"), "");
}

TEST(DrainTest, ExcusesALeaverWhoseTimeWasTooShort) {
  for (const int code : {1, 75, 137}) {
    Observed observed = Asked();
    Exit(observed, 1, code);
    EXPECT_EQ(Reconcile(observed).status->restarts->by_cause["Preemption"], 1) << code;
  }
}

TEST(DrainTest, DoesNotExcuseWhatARestartWouldNotMend) {
  Observed observed = Asked();
  Exit(observed, 1, 66);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "True PermanentError");
}

// Worker 1's pod is deleted, and its replacement is ready while the members still write.
TEST(DrainTest, HoldsTheNextRoundBackUntilTheCheckpointIsWritten) {
  Observed observed = Asked();
  Pod(observed, 1)["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z";
  observed = After(observed, Reconcile(observed));
  for (kube::ObjectPtr& pod : observed.pods) {
    kube::Json running = *pod;
    running["status"]["phase"] = "Running";
    pod = std::make_shared<const kube::Json>(std::move(running));
  }
  observed.workers.workers.push_back(View(observed, 0));
  WorkerView& replacement = observed.workers.workers.back();
  replacement.pod = "digits-1-1";
  replacement.pod_uid = "uid-of-digits-1-1";
  replacement.round = 0;
  const Decision held = Reconcile(observed);
  EXPECT_EQ(held.status->round, 1);
  EXPECT_TRUE(Wait(held).has_value());
  View(observed, 1).drained_step = 123;
  EXPECT_EQ(Reconcile(observed).status->round, 2);
  View(observed, 1).drained_step.reset();
  observed.now += seconds(31);
  EXPECT_EQ(Reconcile(observed).status->round, 2) << "not for ever";
}

// As above, and then another operator leads, whom the one that leaves has not reached yet.
TEST(DrainTest, ANewOperatorWaitsForAWorkerThatIsLeavingToDialInAgain) {
  Observed observed = Asked();
  Pod(observed, 1)["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z";
  observed = After(observed, Reconcile(observed));
  for (kube::ObjectPtr& pod : observed.pods) {
    kube::Json running = *pod;
    running["status"]["phase"] = "Running";
    pod = std::make_shared<const kube::Json>(std::move(running));
  }
  WorkerView& replacement = View(observed, 1);
  replacement = View(observed, 0);
  replacement.pod = "digits-1-1";
  replacement.pod_uid = "uid-of-digits-1-1";
  replacement.round = 0;
  observed.workers.since = observed.now;
  EXPECT_EQ(Reconcile(observed).status->round, 1);
  observed.now += observed.settings.reconnect_timeout;
  EXPECT_EQ(Reconcile(observed).status->round, 2) << "not for ever";
}

TEST(DrainTest, TakesNobodyIntoARoundWhoIsAboutToLeave) {
  Observed observed = Training(2);
  Exit(observed, 1, 137);
  observed = After(observed, Reconcile(observed));
  View(observed, 0).drain_requested = observed.now;
  EXPECT_EQ(Reconcile(observed).status->round, 1);
}

TEST(DrainTest, LeavesTheConditionOfASuspendedJobToIt) {
  Observed observed = Asked();
  observed = After(observed, Reconcile(observed));
  observed.now += seconds(40);
  observed.job.spec.suspend = true;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Draining"), "True Suspending") << "with a time of its own";
  EXPECT_EQ(CountCommands<DrainCommand>(decision), 2);
}

}  // namespace
}  // namespace ringmaster::reconcile

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace reconcile::testing;
using std::chrono::seconds;

TEST(ScalingTest, LetsTheHighestIndicesGoAfterACheckpoint) {
  Observed observed = Training(3);
  observed.job.spec.workers.replicas = 2;
  const Decision asked = Reconcile(observed);
  EXPECT_EQ(CountCommands<CheckpointNowCommand>(asked), 3);
  EXPECT_THAT(DeletedPods(asked), IsEmpty());
  EXPECT_EQ(asked.status->round, 1);
  observed = After(observed, asked);
  observed.now += seconds(1);
  EXPECT_EQ(CountCommands<CheckpointNowCommand>(Reconcile(observed)), 3)
      << "again: who asked first may have died before anyone heard";
  for (const int index : {0, 1, 2}) {
    View(observed, index).durable.push_back({.round = 1, .step = 5, .digest = "d"});
  }
  const Decision left = Reconcile(observed);
  EXPECT_THAT(DeletedPods(left), ElementsAre("digits-2-0"));
  EXPECT_EQ(left.status->round, 2);
  EXPECT_EQ(left.status->members.size(), 2u);
}

TEST(ScalingTest, MakesOnlyTheMissingPodsAndLetsTheOthersTrainOn) {
  Observed observed = Training(2);
  observed.job.spec.workers.replicas = 3;
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-2-0"));
  EXPECT_EQ(decision.announce->round, 1);
  EXPECT_EQ(ConditionOf(decision, "Training"), "True RoundStarted");
}

}  // namespace
}  // namespace ringmaster::reconcile

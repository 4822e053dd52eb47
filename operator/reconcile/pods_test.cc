#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace reconcile::testing;

TEST(PodsTest, PutsTheIncarnationIntoStatusWithThePodThatItNames) {
  const Decision decision = Reconcile(Created(2));
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-0-0", "digits-1-0"));
  ASSERT_EQ(decision.status->incarnations.size(), 2u);
  EXPECT_EQ(decision.status->incarnations[1], (v1::Incarnation{.index = 1, .incarnation = 0}));
}

TEST(PodsTest, GivesAPodThatIsNotThereYetTheSameNameAgain) {
  Observed observed = Created(1);
  observed = After(observed, Reconcile(observed));
  observed.pods.clear();  // the cache is behind, or the operator died before it created the pod
  EXPECT_THAT(CreatedPods(Reconcile(observed)), ElementsAre("digits-0-0"));
}

TEST(PodsTest, CountsOnFromPodsThatAStaleOrWipedStatusDoesNotKnow) {
  Observed observed = Training(1);
  kube::Json& pod = Pod(observed, 0);
  pod["metadata"]["name"] = "digits-0-4";
  pod["metadata"]["labels"]["training.ringmaster.dev/incarnation"] = "4";
  observed.job.status.reset();
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), IsEmpty());
  EXPECT_EQ(decision.status->incarnations[0].incarnation, 4);
}

TEST(PodsTest, CreatesNothingWhileCreationIsHeldAndSaysThatItWaits) {
  Observed observed = Training(2);
  RemovePod(observed, 1);
  const Decision loses = Reconcile(observed);
  EXPECT_FALSE(loses.creation_waits);
  ASSERT_THAT(CreatedPods(loses), ElementsAre("digits-1-1"));
  observed = After(observed, loses);
  RemovePod(observed, 1);  // it was refused
  observed.creation_held = std::chrono::seconds(3);
  const Decision held = Reconcile(observed);
  EXPECT_THAT(CreatedPods(held), IsEmpty());
  EXPECT_TRUE(held.creation_waits);
  EXPECT_EQ(Wait(held), Duration(std::chrono::seconds(3)));
  observed.creation_held = {};
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
  EXPECT_FALSE(decision.creation_waits);
}

TEST(PodsTest, HeldCreationIsNothingToAJobThatMissesNone) {
  Observed observed = Training(2);
  observed.creation_held = std::chrono::seconds(3);
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.creation_waits);
  EXPECT_EQ(Wait(decision), std::nullopt);
}

TEST(PodsTest, DeletesAPodOfAnOutdatedIncarnationWithoutCountingIt) {
  Observed observed = Training(2);
  observed.job.status->incarnations[1].incarnation = 1;
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-1-0"));
  EXPECT_FALSE(decision.status->restarts);
}

TEST(PodsTest, DoesNotDeleteTwiceWhatIsGoingAlready) {
  Observed observed = Training(2);
  observed.job.status->incarnations[1].incarnation = 1;
  Pod(observed, 1)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z";
  EXPECT_THAT(DeletedPods(Reconcile(observed)), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::reconcile

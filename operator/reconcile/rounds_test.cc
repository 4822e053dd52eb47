#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;
using std::chrono::seconds;

TEST(RoundsTest, WaitsForEveryWantedWorker) {
  Observed observed = Training(3);
  observed.job.status->round = 0;
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  View(observed, 2).ready.reset();
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->round, 0);
  EXPECT_FALSE(decision.announce);
  EXPECT_EQ(MessageOf(decision, "Training"), "2 of 3 workers have joined; waiting for digits-2-0.");
}

TEST(RoundsTest, RanksMembersByIndexWhateverTheOrderInWhichTheyCame) {
  Observed observed = Training(3);
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  std::swap(observed.workers.workers[0], observed.workers.workers[2]);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->round, 2);
  ASSERT_EQ(decision.status->members.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(decision.status->members[rank].rank, rank);
    EXPECT_EQ(decision.status->members[rank].pod, "digits-" + std::to_string(rank) + "-0");
  }
  EXPECT_EQ(decision.announce->members.size(), 3u);
}

TEST(RoundsTest, AnnouncesTheRoundInForceOnEveryPass) {
  const Decision decision = Reconcile(Training(2));
  ASSERT_TRUE(decision.announce);
  EXPECT_EQ(decision.announce->round, 1);
  EXPECT_EQ(decision.announce->shards, 8);
}

TEST(RoundsTest, FixesTheShardsAtTheFirstRoundForGood) {
  Observed observed = Training(2);
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  observed.job.spec.trainer->batch.shards = 16;
  EXPECT_EQ(Reconcile(observed).status->shards, 8);
}

TEST(RoundsTest, CountsNoWorkerOfAnotherPodUid) {
  Observed observed = Training(2);
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  View(observed, 1).pod_uid = "a pod of that name that was";
  EXPECT_EQ(Reconcile(observed).status->round, 1);
}

TEST(RoundsTest, CountsNoWorkerThatCameOnlyToSayItsLast) {
  Observed observed = Training(2);
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  View(observed, 1).departing = true;
  EXPECT_EQ(Reconcile(observed).status->round, 1);
}

TEST(RoundsTest, BeginsANewOneWhenAMemberListensElsewhere) {
  Observed observed = Training(2);
  View(observed, 1).ready->address = "127.0.0.9:7473";
  const Decision waiting = Reconcile(observed);
  observed = After(observed, waiting);
  observed.now += seconds(30);
  EXPECT_EQ(Reconcile(observed).status->members[1].address, "127.0.0.9:7473");
}

}  // namespace
}  // namespace ringmaster::reconcile

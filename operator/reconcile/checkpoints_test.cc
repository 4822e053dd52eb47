#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace reconcile::testing;
using std::chrono::seconds;

ShardReport Shard(int step, const std::string& digest = "d") {
  return {.round = 1, .step = step, .digest = digest};
}

TEST(CheckpointsTest, ExistOnlyWhenEveryMemberHasReportedThem) {
  Observed observed = Training(2);
  View(observed, 0).durable.push_back(Shard(10));
  EXPECT_THAT(Reconcile(observed).status->checkpoints, IsEmpty());
  View(observed, 1).durable.push_back(Shard(10));
  const Decision decision = Reconcile(observed);
  ASSERT_EQ(decision.status->checkpoints.size(), 1u);
  EXPECT_EQ(decision.status->checkpoints[0].step, 10);
  EXPECT_EQ(decision.status->checkpoints[0].world_size, 2);
  EXPECT_EQ(CountCommands<CheckpointCommittedCommand>(decision), 2);
}

TEST(CheckpointsTest, AreNamedByTheDigestsInRankOrder) {
  Observed observed = Training(2);
  View(observed, 0).durable.push_back(Shard(10, "aa"));
  View(observed, 1).durable.push_back(Shard(10, "bb"));
  // printf 'aa\nbb\n' | sha256sum
  EXPECT_EQ(Reconcile(observed).status->checkpoints[0].digest,
            "329d670e59ead1543a2d36865895972560bc434204c5f4a0c8219005dd312719");
}

TEST(CheckpointsTest, AreNotCommittedAgainOnceTheyAreDropped) {
  Observed observed = Training(1);
  observed.job.spec.checkpoint.keep = 1;
  for (const int step : {10, 20, 30}) View(observed, 0).durable.push_back(Shard(step));
  observed = After(observed, Reconcile(observed));
  const Decision again = Reconcile(observed);
  EXPECT_EQ(again.status, observed.job.status);
  EXPECT_EQ(CountCommands<CheckpointCommittedCommand>(again), 0);
}

TEST(CheckpointsTest, ReplaceThoseOfTheSameStepFromAnEarlierRound) {
  Observed observed = Training(1);
  observed.job.status->checkpoints = {
      {.step = 10, .round = 0, .digest = "old", .time = observed.now}};
  View(observed, 0).durable.push_back(Shard(10));
  const Decision decision = Reconcile(observed);
  ASSERT_EQ(decision.status->checkpoints.size(), 1u);
  EXPECT_EQ(decision.status->checkpoints[0].round, 1);
}

TEST(CheckpointsTest, LeaveTheListWhenTheyDoNotLoad) {
  Observed observed = Training(1);
  observed.job.status->checkpoints = {{.step = 20, .time = observed.now - seconds(2)},
                                      {.step = 10, .time = observed.now - seconds(3)}};
  View(observed, 0)
      .checkpoint_rejections.push_back(
          {.round = 1, .step = 20, .message = "torn", .time = observed.now});
  const Decision decision = Reconcile(observed);
  ASSERT_EQ(decision.status->checkpoints.size(), 1u);
  EXPECT_EQ(decision.status->checkpoints[0].step, 10);
  EXPECT_THAT(Events(decision), Contains("CheckpointRejected"));
  EXPECT_EQ(ConditionOf(decision, "CheckpointsHealthy"), "False CheckpointRejected");
  EXPECT_EQ(MessageOf(decision, "CheckpointsHealthy"),
            "The checkpoint of step 20 does not load on worker digits-0-0 and is skipped for the "
            "one of step 10: torn");
}

TEST(CheckpointsTest, AreHealthyAgainWithTheNextThatIsWritten) {
  Observed observed = Training(1);
  observed.job.status->checkpoints = {{.step = 20, .time = observed.now - seconds(2)}};
  View(observed, 0)
      .checkpoint_rejections.push_back(
          {.round = 1, .step = 20, .message = "torn", .time = observed.now - seconds(1)});
  const Decision rejected = Reconcile(observed);
  EXPECT_THAT(MessageOf(rejected, "CheckpointsHealthy"),
              HasSubstr("is skipped with none before it: torn"));
  View(observed, 0).durable.push_back(Shard(30));
  for (const Decision& decision : {Reconcile(observed), Reconcile(After(observed, rejected))}) {
    EXPECT_EQ(ConditionOf(decision, "CheckpointsHealthy"), "True CheckpointCommitted");
  }
}

}  // namespace
}  // namespace ringmaster::reconcile

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
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

ShardReport Evaluated(int step, double value) {
  ShardReport report = Shard(step);
  report.metric_value = value;
  return report;
}

std::vector<int64_t> Steps(const Decision& decision) {
  std::vector<int64_t> steps;
  for (const v1::CheckpointStatus& checkpoint : decision.status->checkpoints) {
    steps.push_back(checkpoint.step);
  }
  return steps;
}

TEST(CheckpointsTest, TheBestStaysWhereTheSpecSaysSo) {
  Observed observed = Training(1);
  observed.job.spec.checkpoint.keep = 2;
  View(observed, 0).durable = {Evaluated(10, 0.9), Evaluated(20, 0.3),  Evaluated(30, 0.4),
                               Evaluated(40, 0.3), Evaluated(50, 0.35), Shard(55)};
  Decision decision = Reconcile(observed);
  EXPECT_THAT(Steps(decision), ElementsAre(55, 50));
  EXPECT_FALSE(decision.status->best_checkpoint);
  observed.job.spec.checkpoint.keep_best = true;
  decision = Reconcile(observed);
  EXPECT_THAT(Steps(decision), ElementsAre(55, 50, 20)) << "the older of two that are equal";
  EXPECT_EQ(decision.status->best_checkpoint,
            (v1::BestCheckpoint{.step = 20, .metric = v1::Metric::kLoss, .value = 0.3}));
}

TEST(CheckpointsTest, TheBestGoesOnceABetterOneExists) {
  Observed observed = Training(1);
  observed.job.spec.checkpoint.keep = 1;
  observed.job.spec.checkpoint.keep_best = true;
  observed.job.spec.trainer->evaluation.metric = v1::Metric::kAccuracy;
  View(observed, 0).durable = {Evaluated(10, 0.9), Evaluated(20, 0.8)};
  const Decision before = Reconcile(observed);
  EXPECT_THAT(Steps(before), ElementsAre(20, 10));
  observed = After(observed, before);
  View(observed, 0).durable = {Evaluated(30, 0.95)};
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(Steps(decision), ElementsAre(30));
  EXPECT_EQ(decision.status->best_checkpoint->step, 30);
  for (const Action& action : decision.actions) {
    const auto* send = std::get_if<SendCommand>(&action);
    if (send == nullptr) continue;
    EXPECT_EQ(std::get<CheckpointCommittedCommand>(send->command).dropped.size(), 2u);
  }
}

TEST(CheckpointsTest, TheNextBestIsNamedWhereTheBestDoesNotLoad) {
  Observed observed = Training(1);
  observed.job.spec.checkpoint.keep_best = true;
  observed.job.status->checkpoints = {
      {.step = 20, .time = observed.now - seconds(2), .metric_value = 0.3},
      {.step = 10, .time = observed.now - seconds(3), .metric_value = 0.5}};
  EXPECT_EQ(Reconcile(observed).status->best_checkpoint->step, 20);
  View(observed, 0)
      .checkpoint_rejections.push_back(
          {.round = 1, .step = 20, .message = "torn", .time = observed.now});
  EXPECT_EQ(Reconcile(observed).status->best_checkpoint->step, 10);
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

// What becomes of what the workers say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/rendezvous/testing/registry_fixture.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::kJob;
using testing::Line;
using testing::MakeProgress;
using testing::MakeReady;
using testing::MakeShard;
using testing::RegistryTest;

TEST_F(RegistryTest, DropsEventsOfAnOlderRound) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(2, {"u0"}));
  changes_ = 0;
  Say(line, MakeProgress(1, 50));
  Say(line, MakeShard(1, 50, "d"));
  EXPECT_FALSE(View("u0").progress.has_value());
  EXPECT_TRUE(View("u0").durable.empty());
  EXPECT_EQ(changes_, 0);
  Say(line, MakeReady("10.0.0.1:7473"));  // speaks of the worker, not of a round
  EXPECT_TRUE(View("u0").ready.has_value());
}

TEST_F(RegistryTest, HoldsProgressBackToTwoASecond) {
  const Line line = Join("u0");
  changes_ = 0;
  for (int step = 1; step <= 40; ++step) {
    Say(line, MakeProgress(1, step));
    clock_.Advance(milliseconds(50));
    registry_.Tick();
  }
  EXPECT_GE(changes_, 4);
  EXPECT_LE(changes_, 6);  // the first also moves the worker to round 1
  Pass(seconds(1));
  EXPECT_EQ(View("u0").progress->step, 40);
  EXPECT_LE(changes_, 6);
}

TEST_F(RegistryTest, TellsOfADurableShardAtOnceAndOnlyOnce) {
  const Line line = Join("u0");
  Say(line, MakeShard(1, 10, "d10"));
  changes_ = 0;
  Say(line, MakeShard(1, 10, "d10"));
  EXPECT_EQ(changes_, 0);
  Say(line, MakeShard(1, 20, "d20"));
  EXPECT_EQ(changes_, 1);
  ASSERT_EQ(View("u0").durable.size(), 2u);
  registry_.Send(kJob, "u0", reconcile::CheckpointCommittedCommand{{.step = 10, .round = 1}, {}});
  ASSERT_EQ(View("u0").durable.size(), 1u);
  EXPECT_EQ(View("u0").durable[0].digest, "d20");
}

TEST_F(RegistryTest, KeepsWhatAnEvaluationMeasuredAndNothingMore) {
  const Line line = Join("u0");
  v1::Event progress = MakeProgress(1, 10);
  Say(line, progress);
  EXPECT_FALSE(View("u0").progress->evaluation.has_value()) << "none, or a trainer of old";
  v1::Evaluation& evaluation = *progress.mutable_progress()->mutable_evaluation();
  evaluation.set_step(10);
  evaluation.set_loss(0.5);
  evaluation.set_perplexity(1.6);
  Say(line, progress);
  const auto report = View("u0").progress->evaluation;
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->step, 10);
  EXPECT_EQ(report->perplexity, 1.6);
  EXPECT_FALSE(report->auroc.has_value());
  v1::Event shard = MakeShard(1, 10, "d10");
  shard.mutable_shard_durable()->set_metric_value(0.5);
  Say(line, shard);
  EXPECT_EQ(View("u0").durable[0].metric_value, 0.5);
  v1::Event finished;
  finished.set_round(1);
  finished.mutable_finished()->set_stopped_early("why");
  *finished.mutable_finished()->mutable_evaluation() = evaluation;
  Say(line, finished);
  EXPECT_EQ(View("u0").finished->stopped_early, "why");
  EXPECT_EQ(View("u0").finished->evaluation->loss, 0.5);
}

TEST_F(RegistryTest, ForgetsShardReportsOfTheRoundBefore) {
  const Line line = Join("u0");
  Say(line, MakeShard(1, 10, "d10"));
  Beat(line, 2);
  EXPECT_EQ(View("u0").round, 2);
  EXPECT_TRUE(View("u0").durable.empty());
}

TEST_F(RegistryTest, KeepsABoundedNumberOfReports) {
  const Line line = Join("u0");
  for (int step = 0; step < 1000; ++step) Say(line, MakeShard(1, step, "d"));
  ASSERT_EQ(View("u0").durable.size(), kReportsKept);
  EXPECT_EQ(View("u0").durable.back().step, 999);
}

TEST_F(RegistryTest, KeepsTheLastWordsOfAWorkerUntilItsPodIsGone) {
  const Line line = Join("u0");
  v1::Event exited;
  exited.mutable_exited()->set_exit_code(66);
  exited.mutable_exited()->set_message("digits.csv:3: not a number");
  exited.mutable_exited()->set_out_of_memory(true);
  Say(line, exited);
  registry_.Closed(line.id);
  Pass(seconds(10));
  EXPECT_EQ(View("u0").exited->exit_code, 66);
  EXPECT_TRUE(View("u0").exited->out_of_memory);
  verifier_.verdicts.erase("u0");
  Pass(seconds(10));
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
}

TEST_F(RegistryTest, TakesAForeignProgramForReadyAtHello) {
  JoinForeign("10.0.0.1:29500", /*leaving=*/false);
  ASSERT_TRUE(View("u0").ready.has_value());
  EXPECT_EQ(View("u0").ready->address, "10.0.0.1:29500");
}

// It goes into the job's status, and every member dials it.
TEST_F(RegistryTest, TakesOnlyAnAddressThatAPeerCanDial) {
  for (const std::string& address :
       {std::string(), std::string("fast.example.com:7473"), std::string(1 << 20, '1')}) {
    const Line line = Join("u0");
    Say(line, MakeReady(address));
    ASSERT_TRUE(line.down->end.has_value()) << address.substr(0, 40);
    EXPECT_EQ(line.down->end->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(View("u0").ready.has_value());
  }
  Say(Join("u0"), MakeReady("[fd00:2::7]:7473"));
  EXPECT_EQ(View("u0").ready->address, "[fd00:2::7]:7473");
}

TEST_F(RegistryTest, RefusesAForeignProgramThatNoPeerCouldDial) {
  for (const std::string& address : {std::string(), std::string("net1:29500")}) {
    const Line line = JoinForeign(address, /*leaving=*/false);
    ASSERT_THAT(line.down->Story(), ElementsAre("refused"));
    EXPECT_EQ(line.down->messages[0].refused().reason(),
              "the Hello's address is not a numeric host:port");
  }
}

TEST_F(RegistryTest, HearsAForeignProgramWithoutAnAddressThatOnlySaysItsLast) {
  EXPECT_THAT(JoinForeign("", /*leaving=*/true).down->Story(), ElementsAre("accepted"));
  EXPECT_TRUE(View("u0").departing);
}

}  // namespace
}  // namespace ringmaster::rendezvous

#include "runtime/train/session.h"

#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "runtime/checkpoint/testing.h"
#include "runtime/device/available_memory.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/testing/file_size_limit.h"

namespace ringmaster::train {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::DigitsJob;
using ::testing::ElementsAre;
using testing::FileSizeLimit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// In the metrics.
std::string Calls(std::string_view operation, int count) {
  return fmt::format("ringmaster_trainer_collective_calls_total{{operation=\"{}\"}} {}\n",
                     operation, count);
}

class SessionTest : public ::testing::Test {
 protected:
  // How one worker ends that should not get as far as being ready.
  Ending EndingOfOne() {
    Cluster cluster(job_.config, job_.options);
    cluster.Start(1);
    const Ending ending = cluster.WaitForEndings().front();
    EXPECT_THAT(cluster.Events(0), IsEmpty());
    return ending;
  }

  std::string DigestWith(int world) {
    std::filesystem::remove_all(job_.checkpoints());
    Cluster cluster(job_.config, job_.options);
    cluster.Start(world);
    cluster.Announce();
    return cluster.WaitUntilFinished().weights_sha256;
  }

  void WriteData(const std::string& content) { std::ofstream(job_.data()) << content; }

  DigitsJob job_;
};

TEST_F(SessionTest, SaysWhatItWillTrainBeforeItTrains) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  cluster.WaitUntil("ready", [&] { return !cluster.Events(0).empty(); });
  const Ready ready = cluster.EventsOf<Ready>(0).front();
  EXPECT_THAT(ready.model, AllOf(HasSubstr("lenet-bn, "), HasSubstr(" parameters")));
  EXPECT_GT(ready.parameters, 1000);
  EXPECT_EQ(ready.total_steps, 13);
  EXPECT_EQ(ready.kernels_digest.size(), 64U);
}

TEST_F(SessionTest, NamesAMissingDataFile) {
  std::filesystem::remove(job_.data());
  const Ending ending = EndingOfOne();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_THAT(ending.message, HasSubstr("digits.csv"));
}

TEST_F(SessionTest, NamesTheLineOfAMalformedDataFile) {
  std::ofstream(job_.data(), std::ios::app) << "1,2,three\n";
  const Ending ending = EndingOfOne();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_THAT(ending.message, HasSubstr("digits.csv:159: "));
}

TEST_F(SessionTest, RefusesAnEmptyDataFile) {
  WriteData("");
  const Ending ending = EndingOfOne();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_THAT(ending.message, HasSubstr("digits.csv"));
}

TEST_F(SessionTest, NamesTheLayerThatDoesNotFit) {
  training::v1alpha1::Layer layer;
  layer.name = "wide";
  layer.conv2d.emplace();
  layer.conv2d->channels = 4;
  layer.conv2d->kernel = 30;
  job_.config.trainer.model.zoo.reset();
  job_.config.trainer.model.sequential.emplace();
  job_.config.trainer.model.sequential->layers = {layer};
  const Ending ending = EndingOfOne();
  EXPECT_EQ(ending.exit_code, contract::kExitBadModel);
  EXPECT_THAT(ending.message, HasSubstr("wide"));
}

TEST_F(SessionTest, NamesTheLayerWhoseResultNoMemoryHolds) {
  training::v1alpha1::Layer layer;
  layer.name = "padded";
  layer.conv2d.emplace();
  layer.conv2d->channels = 1;
  layer.conv2d->kernel = 1;
  layer.conv2d->padding = std::numeric_limits<int32_t>::max();
  job_.config.trainer.model.zoo.reset();
  job_.config.trainer.model.sequential.emplace();
  job_.config.trainer.model.sequential->layers = {layer};
  const Ending ending = EndingOfOne();
  EXPECT_EQ(ending.exit_code, contract::kExitBadModel);
  EXPECT_THAT(ending.message, AllOf(HasSubstr("padded"), HasSubstr("too large")));
}

TEST_F(SessionTest, RefusesAModelThatTheMachineHasNoMemoryFor) {
  training::v1alpha1::Layer flatten, wide, narrow;
  flatten.flatten.emplace();
  wide.linear.emplace();
  wide.linear->features = 900'000'000;  // 230 GB of weights
  narrow.linear.emplace();
  narrow.linear->features = 4;
  job_.config.trainer.model.zoo.reset();
  job_.config.trainer.model.sequential.emplace();
  job_.config.trainer.model.sequential->layers = {flatten, wide, narrow};
  const Ending ending = EndingOfOne();
  const bool limited =
      device::FindMemoryRoom()->most < std::numeric_limits<int64_t>::max() / 2;  // "unlimited"
  EXPECT_EQ(ending.exit_code, limited ? contract::kExitBadModel : contract::kExitNoResource);
  EXPECT_THAT(ending.message, AllOf(HasSubstr("the model needs at least "),
                                    HasSubstr("993.60 GB for weights and gradients")));
}

// How much it is follows from the number of workers, which a worker learns with its round.
TEST_F(SessionTest, RefusesAShareOfABatchThatTheMachineHasNoMemoryFor) {
  using training::v1alpha1::BatchNormOver;
  training::v1alpha1::Layer wide, norm, mean, flatten, narrow;
  wide.conv2d.emplace();
  wide.conv2d->channels = 1 << 16;  // 16 MB a sample
  wide.conv2d->kernel = 1;
  norm.batch_norm.emplace();
  mean.adaptive_average_pool.emplace();
  flatten.flatten.emplace();
  narrow.linear.emplace();
  narrow.linear->features = 4;
  training::v1alpha1::Model& model = job_.config.trainer.model;
  model.zoo.reset();
  model.sequential.emplace().layers = {wide, norm, mean, flatten, narrow};
  job_.config.trainer.batch = {.size = 1 << 17, .shards = 0};
  for (const BatchNormOver over : {BatchNormOver::kPerShard, BatchNormOver::kSynchronised}) {
    model.batch_norm = over;
    Cluster cluster(job_.config, job_.options);
    cluster.Start(1);
    cluster.Announce();
    const Ending ending = cluster.WaitForEndings().front();
    EXPECT_EQ(ending.exit_code, contract::kExitNoResource);
    EXPECT_THAT(ending.message, AllOf(HasSubstr("training needs "),
                                      HasSubstr("of a shard of 131072 samples; give the job more "
                                                "workers, make the batch smaller, cut it into "
                                                "shards (batch.shards), or ")));
  }
}

TEST_F(SessionTest, NamesAWorkerWithOtherData) {
  const DigitsJob other;
  other.AppendSample();
  Cluster cluster(job_.config, job_.options);
  cluster.adjust = [&](int worker, SessionOptions& options) {
    if (worker == 1) options.workspace = other.workspace().string();
  };
  cluster.Start(3);
  cluster.Announce();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitBadData);
    EXPECT_THAT(ending.message, HasSubstr("worker 1 has other data"));
  }
}

TEST_F(SessionTest, RefusesMoreWorkersThanShards) {
  job_.config.trainer.batch.shards = 2;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.Announce();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitBadConfig);
    EXPECT_THAT(ending.message, HasSubstr("in 2 shards cannot be shared by 3 workers"));
  }
}

TEST_F(SessionTest, StopsEveryWorkerAtTheStepThatDiverged) {
  job_.config.trainer.optimizer.sgd->learning_rate = 1e30;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitDiverged);
    EXPECT_THAT(ending.message, HasSubstr("in step 2"));
    EXPECT_THAT(ending.message, HasSubstr("; on worker 0 the first came out of "))
        << "every worker names the op";
  }
}

TEST_F(SessionTest, NamesAWeightThatWasInfiniteBeforeTheStep) {
  job_.config.trainer.optimizer.sgd->learning_rate = 1e300;  // infinite as a float
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  cluster.Announce();
  const Ending ending = cluster.WaitForEndings().front();
  EXPECT_EQ(ending.exit_code, contract::kExitDiverged);
  EXPECT_THAT(ending.message, HasSubstr("; on worker 0 bn1.beta had such numbers before the step"));
}

TEST_F(SessionTest, SkipsStepsThatDivergeWhenToldTo) {
  job_.config.trainer.optimizer.sgd->learning_rate = 1e30;
  job_.config.trainer.non_finite_loss = training::v1alpha1::NonFiniteLoss::kSkip;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().steps, 13);
  EXPECT_THAT(cluster.MetricsOf(0), HasSubstr("ringmaster_trainer_skipped_steps_total 12"));
}

TEST_F(SessionTest, OneWorkerLeavesAfterACommonCheckpointAndTheOthersWaitForTheNextRound) {
  const std::string expected = DigestWith(1);
  std::filesystem::remove_all(job_.checkpoints());
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.RunTo(0, 5);
  cluster.Tell(2, Drain{.reason = "the node goes down", .alone = true});
  cluster.Resume();
  cluster.WaitUntil("the worker leaves", [&] { return cluster.EndingOf(2).has_value(); });
  ASSERT_EQ(cluster.EventsOf<Drained>(2).size(), 1U);
  const int64_t step = cluster.EventsOf<Drained>(2).front().step;
  cluster.WaitForCheckpoint(step);
  cluster.Kill(2);
  cluster.Start(3);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().weights_sha256, expected);
  for (const int stayed : {0, 1}) {
    EXPECT_EQ(cluster.EventsOf<Ready>(stayed).size(), 1U) << "the same session";
    EXPECT_THAT(cluster.EventsOf<Drained>(stayed), IsEmpty());
    EXPECT_THAT(cluster.EventsOf<PeerLost>(stayed), IsEmpty());
    // Of both rounds: 13 steps and 3 evaluations.
    EXPECT_THAT(cluster.MetricsOf(stayed), HasSubstr(Calls("ordered_sum", 16)));
  }
  const auto begun = cluster.EventsOf<Progress>(2);
  ASSERT_FALSE(begun.empty());
  EXPECT_EQ(begun.front().step, step) << "no step is repeated";
}

TEST_F(SessionTest, LeavingWithoutADiskTakesNobodyElseAlong) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.RunTo(0, 5);
  auto full = std::make_optional<FileSizeLimit>(1000);
  cluster.Tell(1, Drain{.reason = "the node goes down", .alone = true});
  cluster.Resume();
  cluster.WaitUntil("the worker leaves", [&] { return cluster.EndingOf(1).has_value(); });
  EXPECT_EQ(cluster.EndingOf(1)->exit_code, contract::kExitNoResource);
  full.reset();
  cluster.Kill(1);
  cluster.Start(2);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().steps, 13);
  EXPECT_EQ(cluster.EventsOf<Ready>(0).size(), 1U) << "the same session";
}

TEST_F(SessionTest, DrainsAtOneCommonStepAndResumesWithTheSameBits) {
  const std::string expected = DigestWith(1);
  std::filesystem::remove_all(job_.checkpoints());
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.RunTo(0, 5);
  cluster.Tell(2, Drain{.reason = "the node goes down"});  // one is enough
  cluster.Resume();
  std::optional<int64_t> step;
  for (const Ending& ending : cluster.WaitForEndings()) EXPECT_EQ(ending.exit_code, 0);
  for (int worker = 0; worker < 3; ++worker) {
    const auto drained = cluster.EventsOf<Drained>(worker);
    ASSERT_EQ(drained.size(), 1U);
    EXPECT_EQ(step.value_or(drained[0].step), drained[0].step);
    step = drained[0].step;
    EXPECT_THAT(cluster.EventsOf<Finished>(worker), IsEmpty());
    cluster.Kill(worker);
  }
  ASSERT_EQ(cluster.checkpoints().size(), 1U);
  EXPECT_EQ(cluster.checkpoints().front().id.step, *step);
  cluster.Start(3);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().weights_sha256, expected);
}

TEST_F(SessionTest, DrainsWithoutARoundAtOnce) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  cluster.TellAll(Drain{.reason = "the job is suspended"});
  EXPECT_EQ(cluster.WaitForEndings().front().exit_code, 0);
  EXPECT_EQ(cluster.EventsOf<Drained>(0).size(), 1U);
}

TEST_F(SessionTest, StopsInTheMiddleOfARound) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.RunTo(0, 3);
  cluster.TellAll(Stop{.reason = "the job was deleted"});
  cluster.Resume();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitPeerLost);
    EXPECT_THAT(ending.message, HasSubstr("the job was deleted"));
  }
}

TEST_F(SessionTest, LeavesWhenNoRoundComesInTime) {
  job_.options.round_timeout = std::chrono::milliseconds(10);
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  EXPECT_EQ(cluster.WaitForEndings().front().exit_code, contract::kExitPeerLost);
}

TEST_F(SessionTest, WritesACheckpointWhenAskedAtOneCommonStep) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.RunTo(1, 4);
  cluster.Tell(1, CheckpointNow{});
  cluster.Resume();
  cluster.WaitUntilFinished();
  for (int worker = 0; worker < 3; ++worker) {
    const auto durable = cluster.EventsOf<ShardDurable>(worker);
    ASSERT_EQ(durable.size(), 2U) << "that one and the last";
    EXPECT_EQ(durable[0].step, 5);
    EXPECT_EQ(durable[1].step, 13);
  }
}

TEST_F(SessionTest, WritesACheckpointWhenItsTimeHasCome) {
  FakeClock clock;
  job_.options.clock = &clock;
  job_.config.checkpoint.every_seconds = 60;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.RunTo(0, 6);
  clock.Advance(std::chrono::seconds(61));
  cluster.Resume();
  cluster.WaitUntilFinished();
  const auto durable = cluster.EventsOf<ShardDurable>(1);
  ASSERT_EQ(durable.size(), 2U);
  EXPECT_EQ(durable[0].step, 7);
}

TEST_F(SessionTest, KeepsTheNewestCheckpointsOnly) {
  job_.config.checkpoint.every_steps = 2;
  job_.config.checkpoint.keep = 2;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  cluster.WaitUntilFinished();
  EXPECT_THAT(job_.CheckpointFiles(), ElementsAre("step-12-round-1-rank-0-of-2.safetensors",
                                                  "step-12-round-1-rank-1-of-2.safetensors",
                                                  "step-13-round-1-rank-0-of-2.safetensors",
                                                  "step-13-round-1-rank-1-of-2.safetensors"));
}

TEST_F(SessionTest, TrainsOnWhileTheDiskIsFull) {
  const std::string expected = DigestWith(1);
  std::filesystem::remove_all(job_.checkpoints());
  job_.config.checkpoint.every_steps = 4;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  auto full = std::make_optional<FileSizeLimit>(1000);
  cluster.RunTo(0, 6);
  for (const int worker : {0, 1}) {
    cluster.WaitUntil("the failure is reported",
                      [&] { return !cluster.EventsOf<CheckpointFailed>(worker).empty(); });
    EXPECT_EQ(cluster.EventsOf<CheckpointFailed>(worker).front().step, 4);
  }
  EXPECT_THAT(job_.CheckpointFiles(), IsEmpty()) << "no half of one stays";
  full.reset();
  cluster.Resume();
  EXPECT_EQ(cluster.WaitUntilFinished().weights_sha256, expected);
  EXPECT_EQ(cluster.checkpoints().front().id.step, 13);
}

TEST_F(SessionTest, FailsWhenTheLastCheckpointCannotBeWritten) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.RunTo(0, 12);
  const FileSizeLimit full(1000);
  cluster.Resume();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitNoResource);
    EXPECT_THAT(ending.message, HasSubstr("step 13"));
  }
  EXPECT_THAT(cluster.EventsOf<Finished>(0), IsEmpty());
}

TEST_F(SessionTest, ADiskThatHangsIsNamedAndItsWorkerIsNotTakenForHung) {
  job_.options.operation_timeout = std::chrono::seconds(6);
  job_.options.flush_timeout = std::chrono::seconds(13);
  std::filesystem::create_directories(job_.checkpoints());
  Cluster cluster(job_.config, job_.options);
  const checkpoint::HangingFile disk(
      job_.checkpoints() /
      checkpoint::TemporaryName({.step = 13, .round = 1, .world_size = 2}, 1, job_.options.job));
  cluster.Start(2);
  cluster.Announce();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitNoResource);
    EXPECT_THAT(ending.message, HasSubstr("the checkpoint of step 13 could not be written"));
  }
  for (const int worker : {0, 1}) EXPECT_THAT(cluster.EventsOf<PeerLost>(worker), IsEmpty());
}

TEST_F(SessionTest, LeavesWithoutTheOperatorOnceItsCheckpointIsOnDisk) {
  job_.options.commit_timeout = std::chrono::milliseconds(10);
  Cluster cluster(job_.config, job_.options);
  cluster.commits = false;
  cluster.Start(2);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().steps, 13);
}

TEST_F(SessionTest, CountsWhatItDoesInItsMetrics) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  cluster.WaitUntilFinished();
  const std::string text = cluster.MetricsOf(1);
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_steps_total 13"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_step_seconds_count 13"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_allreduce_seconds_count 13"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_samples_total 169"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_checkpoints_total{result=\"written\"} 1"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_allreduce_bytes_total{direction=\"sent\"}"));
  EXPECT_THAT(text, HasSubstr("ringmaster_trainer_sharing_peers 1"));
  EXPECT_THAT(text, HasSubstr(Calls("ordered_sum", 16)));  // of 13 steps and 3 evaluations
  EXPECT_THAT(text, HasSubstr(Calls("scatter", 0)));
  constexpr char kSent[] =
      "ringmaster_trainer_collective_bytes_total{direction=\"sent\",operation=\"ordered_sum\"} ";
  EXPECT_THAT(text, AllOf(HasSubstr(kSent), Not(HasSubstr(std::string(kSent) + "0\n"))));
}

}  // namespace
}  // namespace ringmaster::train

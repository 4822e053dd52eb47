// Rounds that end early: whatever happens, training goes on from a checkpoint and ends with the
// bits of an undisturbed run.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::DigitsJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TrainUndisturbed;
using testing::TrainWithALoss;

// A job with a checkpoint every four steps, and what it ends with when nothing happens to it.
class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    expected_ = TrainUndisturbed(job_.config, job_.options);
    std::filesystem::remove_all(job_.checkpoints());
    job_.config.checkpoint.every_steps = 4;
  }

  void ExpectUndisturbed(const Finished& finished) {
    EXPECT_EQ(finished.weights_sha256, expected_.weights_sha256);
    EXPECT_EQ(finished.evaluation, expected_.evaluation);
    EXPECT_EQ(finished.steps, expected_.steps);
  }

  // Three workers, the second of which dies after step 9, when the checkpoints of 4 and 8 exist.
  void LoseAWorkerAtStepNine(Cluster& cluster) {
    cluster.Start(3);
    cluster.RunTo(1, 9);
    cluster.WaitForCheckpoint(8);
    cluster.Kill(1);
  }

  std::filesystem::path ShardFile(int64_t step, int rank) {
    return job_.checkpoints() /
           checkpoint::ShardFileName({.step = step, .round = 1, .world_size = 3}, rank);
  }

  DigitsJob job_;
  Finished expected_;
};

TEST_F(RecoveryTest, ReplacesALostWorker) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  cluster.Start(3);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, SurvivorsReportTheLossAndStay) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  for (const int survivor : {0, 2}) {
    cluster.WaitUntil("a survivor reports",
                      [&] { return !cluster.EventsOf<PeerLost>(survivor).empty(); });
    EXPECT_THAT(cluster.EventsOf<PeerLost>(survivor).front().message, HasSubstr("rank 1"));
  }
  cluster.Start(3);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
  EXPECT_EQ(cluster.EventsOf<Ready>(0).size(), 1U) << "the same session";
}

TEST_F(RecoveryTest, GoesOnWithFewerWorkers) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  cluster.Start(3);
  cluster.Shrink(2);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, GoesOnWithMoreWorkers) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  cluster.Start(5);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, AWholeNewSetOfWorkersResumes) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  cluster.Kill(0);
  cluster.Kill(2);
  cluster.Start(3);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, StartsAnewWhenThereWasNoCheckpoint) {
  job_.config.checkpoint.every_steps = 0;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.RunTo(0, 5);
  cluster.Kill(0);
  cluster.Start(2);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, RoundsInQuickSuccessionChangeNothing) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  for (int64_t step = 2; step <= 10; step += 2) {
    cluster.RunTo(static_cast<int>(step) % 3, step);
    cluster.Resume();
  }
  cluster.Announce();
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
}

TEST_F(RecoveryTest, ALossAfterTheLastCheckpointRepeatsNothing) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  const Finished first = cluster.WaitUntilFinished();
  cluster.Kill(0);
  cluster.Kill(1);
  cluster.Start(2);
  cluster.Announce();
  const Finished again = cluster.WaitUntilFinished();
  EXPECT_EQ(again.weights_sha256, first.weights_sha256);
  EXPECT_EQ(again.evaluation, first.evaluation);
  EXPECT_EQ(again.loss, first.loss);
  EXPECT_TRUE(cluster.EventsOf<ShardDurable>(0).empty());
}

struct Damage {
  const char* name;
  const char* word;  // in the message
  void (*apply)(const std::filesystem::path& file);
};

void Truncate(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
}

void FlipABit(const std::filesystem::path& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(std::filesystem::file_size(file) - 5);
  stream.seekg(place);
  const int byte = stream.get();
  stream.seekp(place);
  stream.put(static_cast<char>(byte ^ 4));
}

void Delete(const std::filesystem::path& file) {
  std::filesystem::remove(file);
}

class DamagedCheckpointTest : public RecoveryTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedCheckpointTest, IsNamedAndSkippedForTheOneBefore) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  GetParam().apply(ShardFile(8, 2));
  cluster.Start(3);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
  for (int worker = 0; worker < 3; ++worker) {
    const auto rejected = cluster.EventsOf<CheckpointRejected>(worker);
    ASSERT_EQ(rejected.size(), 1U);
    EXPECT_EQ(rejected[0].step, 8);
    EXPECT_THAT(rejected[0].message,
                AllOf(HasSubstr(ShardFile(8, 2).filename().string()), HasSubstr(GetParam().word)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedCheckpointTest,
                         ::testing::Values(Damage{"Truncated", "torn", Truncate},
                                           Damage{"BitFlipped", "corrupt", FlipABit},
                                           Damage{"Missing", "missing", Delete}),
                         [](const auto& info) { return info.param.name; });

TEST_F(RecoveryTest, KeepsADamagedCheckpointToBeLookedAt) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  FlipABit(ShardFile(8, 1));
  cluster.Start(3);
  cluster.RunTo(1, 9);
  cluster.Kill(1);
  cluster.Start(3);
  cluster.Announce();
  cluster.WaitUntilFinished();
  int kept = 0;
  for (const std::string& name : job_.CheckpointFiles()) kept += name.starts_with("rejected-");
  EXPECT_EQ(kept, 3) << "two rounds later";
}

TEST_F(RecoveryTest, WritesADamagedCheckpointAgain) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  FlipABit(ShardFile(8, 1));
  cluster.Start(3);
  cluster.Announce();
  cluster.WaitUntilFinished();
  std::vector<int64_t> steps;
  for (const ShardDurable& durable : cluster.EventsOf<ShardDurable>(1)) {
    steps.push_back(durable.step);
  }
  EXPECT_THAT(steps, ElementsAre(8, 12, 13));
}

TEST_F(RecoveryTest, StartsAnewWhenNoCheckpointLoads) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  Truncate(ShardFile(8, 0));
  FlipABit(ShardFile(4, 2));
  cluster.Start(3);
  cluster.Announce();
  ExpectUndisturbed(cluster.WaitUntilFinished());
  EXPECT_EQ(cluster.EventsOf<CheckpointRejected>(0).size(), 2U);
}

TEST_F(RecoveryTest, RefusesACheckpointThatWasWrittenForOtherData) {
  Cluster cluster(job_.config, job_.options);
  LoseAWorkerAtStepNine(cluster);
  cluster.Kill(0);
  cluster.Kill(2);
  job_.AppendSample();
  cluster.Start(3);
  cluster.Announce();
  cluster.WaitUntilFinished();
  const auto rejected = cluster.EventsOf<CheckpointRejected>(0);
  ASSERT_EQ(rejected.size(), 2U);
  EXPECT_THAT(rejected[0].message, HasSubstr("written for other data"));
}

// Every kind of memory that an optimizer keeps, groups and clipping, under a schedule whose parts
// all begin at some step.
std::vector<training::v1alpha1::Optimizer> Optimizers() {
  using namespace training::v1alpha1;  // NOLINT: names of the API
  const ParameterGroup plain = {.roles = {ParameterRole::kBias, ParameterRole::kNorm},
                                .weight_decay_factor = 0,
                                .layer_wise = false};
  const Clip clip = {.global_norm = 0.5};
  return {
      {.sgd = Sgd{.learning_rate = 0.05, .momentum = 0.9, .form = SgdForm::kCaffe}},
      {.adam_w = AdamW{.learning_rate = 0.005}, .groups = {plain}, .clip = clip},
      {.lars = Lars{.learning_rate = 2, .weight_decay = 1e-3, .trust = 0.02}, .groups = {plain}},
      {.lamb = Lamb{.learning_rate = 0.01}, .groups = {plain}, .clip = Clip{.value = 0.1}}};
}

TEST(OptimizerRecoveryTest, GoesOnWithTheBitsOfAnUndisturbedRun) {
  for (const training::v1alpha1::Optimizer& optimizer : Optimizers()) {
    DigitsJob job;
    job.config.trainer.optimizer = optimizer;
    job.config.trainer.schedule.emplace();
    job.config.trainer.schedule->warmup.emplace();
    job.config.trainer.schedule->warmup->linear.emplace();
    job.config.trainer.schedule->warmup->linear->steps = 3;
    job.config.trainer.schedule->polynomial.emplace();
    job.config.trainer.schedule->collapse.emplace();
    job.config.trainer.schedule->collapse->steps = 3;
    const Finished expected = TrainUndisturbed(job.config, job.options);
    std::filesystem::remove_all(job.checkpoints());
    EXPECT_EQ(TrainWithALoss(job.config, job.options, 2).weights_sha256, expected.weights_sha256);
  }
}

}  // namespace
}  // namespace ringmaster::train

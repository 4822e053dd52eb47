// Jobs that begin with what another job trained.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "runtime/checkpoint/shard_name.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::DigitsJob;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using testing::TrainUndisturbed;
using training::v1alpha1::StartFrom;
using training::v1alpha1::StartFromTake;
using training::v1alpha1::WorkerConfig;

// A job of 13 steps that has left checkpoints of steps 5, 10 and 13 in "first", and another one
// with the same network and data.
class StartFromTest : public ::testing::Test {
 protected:
  StartFromTest() {
    WorkerConfig config = job_.config;
    config.checkpoint.directory = "first";
    config.checkpoint.every_steps = 5;
    first_ = TrainUndisturbed(config, job_.options, 2);
    job_.config.checkpoint.directory = "second";
  }

  WorkerConfig From(StartFrom from) const {
    WorkerConfig config = job_.config;
    config.trainer.start_from = std::move(from);
    return config;
  }

  // What all of two workers end with, alike.
  Ending EndingOf(const WorkerConfig& config) {
    Cluster cluster(config, job_.options);
    cluster.Start(2);
    cluster.Announce();
    const std::vector<Ending> endings = cluster.WaitForEndings();
    EXPECT_EQ(endings.front().exit_code, endings.back().exit_code);
    EXPECT_EQ(endings.front().message, endings.back().message);
    return endings.front();
  }

  void ExpectRefused(const StartFrom& from, int exit_code,
                     const ::testing::Matcher<std::string>& message) {
    const Ending ending = EndingOf(From(from));
    EXPECT_EQ(ending.exit_code, exit_code);
    EXPECT_THAT(ending.message, AllOf(HasSubstr("spec.trainer.startFrom: worker "), message));
  }

  // How two workers end, the second of which has a disk of its own with the same data and a copy of
  // "first" that `change` has changed.
  void ExpectRefusedOnTwoDisks(const StartFrom& from,
                               const std::function<void(const std::filesystem::path&)>& change,
                               int exit_code, const ::testing::Matcher<std::string>& message) {
    const std::filesystem::path other = job_.workspace() / "other machine";
    std::filesystem::create_directory(other);
    std::filesystem::copy(job_.data(), other);
    std::filesystem::copy(job_.workspace() / "first", other / "first");
    change(other);
    Cluster cluster(From(from), job_.options);
    cluster.adjust = [&](int worker, SessionOptions& options) {
      if (worker == 1) options.workspace = other;
    };
    cluster.Start(2);
    cluster.Announce();
    for (const Ending& ending : cluster.WaitForEndings()) {
      EXPECT_EQ(ending.exit_code, exit_code);
      EXPECT_THAT(ending.message, message);
    }
    std::filesystem::remove_all(other);
  }

  DigitsJob job_;
  Finished first_;
};

TEST_F(StartFromTest, EverythingGoesOnAsTheOtherJobDid) {
  for (const int workers : {1, 3}) {
    const Finished branch =
        TrainUndisturbed(From({.path = "first", .step = 5, .take = StartFromTake::kEverything}),
                         job_.options, workers);
    EXPECT_EQ(branch.steps, 13);
    EXPECT_EQ(branch.weights_sha256, first_.weights_sha256);
    EXPECT_EQ(branch.evaluation, first_.evaluation);
    std::filesystem::remove_all(job_.workspace() / "second");
  }
}

TEST_F(StartFromTest, WeightsAloneBeginAtStepZeroWithAnOptimizerThatRemembersNothing) {
  const Finished fine = TrainUndisturbed(From({.path = "first", .step = 13}), job_.options);
  EXPECT_EQ(fine.steps, 13);
  EXPECT_NE(fine.weights_sha256, first_.weights_sha256);
  EXPECT_LT(fine.loss, first_.loss);
}

TEST_F(StartFromTest, TheNewestCheckpointIsTakenWhereNoStepIsNamed) {
  const Finished newest = TrainUndisturbed(From({.path = "first"}), job_.options);
  std::filesystem::remove_all(job_.workspace() / "second");
  const Finished named = TrainUndisturbed(From({.path = "first", .step = 13}), job_.options);
  EXPECT_EQ(newest.weights_sha256, named.weights_sha256);
}

TEST_F(StartFromTest, AFileOfWeightsIsTakenAsACheckpointIs) {
  WorkerConfig config = job_.config;
  config.checkpoint.directory = "alone";
  TrainUndisturbed(config, job_.options);
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(job_.workspace() / "alone"))
    file = entry.path();
  std::filesystem::rename(file, job_.workspace() / "model.safetensors");
  const Finished from_file = TrainUndisturbed(From({.path = "model.safetensors"}), job_.options);
  std::filesystem::remove_all(job_.workspace() / "second");
  const Finished from_directory = TrainUndisturbed(From({.path = "first"}), job_.options);
  EXPECT_EQ(from_file.weights_sha256, from_directory.weights_sha256);
}

TEST_F(StartFromTest, AJobThatHasACheckpointOfItsOwnGoesOnFromThat) {
  WorkerConfig config = From({.path = "first"});
  const Finished undisturbed = TrainUndisturbed(config, job_.options, 2);
  std::filesystem::remove_all(job_.workspace() / "second");
  Cluster cluster(config, job_.options);
  cluster.Start(2);
  cluster.RunTo(1, 3);
  cluster.WaitForCheckpoint(0);
  std::filesystem::remove_all(job_.workspace() / "first");
  cluster.Kill(1);
  cluster.Start(2);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().weights_sha256, undisturbed.weights_sha256);
}

TEST_F(StartFromTest, WhatIsExceptedBeginsAnew) {
  WorkerConfig config = From({.path = "first", .except = {"*"}});
  const Finished anew = TrainUndisturbed(config, job_.options);
  EXPECT_EQ(anew.weights_sha256, first_.weights_sha256) << "as if nothing had been taken";
}

TEST_F(StartFromTest, WhatIsNotThereIsNamedOnEveryRank) {
  ExpectRefused({.path = "none"}, contract::kExitBadData,
                EndsWith("none: there is no such file or directory"));
  ExpectRefused({.path = "first", .step = 6}, contract::kExitBadData,
                EndsWith("first: holds no whole checkpoint of step 6; it has 13, 10, 5"));
  std::filesystem::create_directory(job_.workspace() / "empty");
  ExpectRefused({.path = "empty"}, contract::kExitBadData,
                EndsWith("empty: holds no whole checkpoint"));
}

TEST_F(StartFromTest, WhatDoesNotFitIsNamed) {
  job_.config.trainer.seed = 2;
  ExpectRefused({.path = "first", .step = 5, .take = StartFromTake::kEverything},
                contract::kExitBadConfig, EndsWith("it was written for seed 7"));
  ExpectRefused({.path = "first", .except = {"cnov*"}}, contract::kExitBadConfig,
                HasSubstr("except[0]: 'cnov*' is the name of no parameter"));
  std::ofstream(job_.workspace() / "torn.safetensors") << "torn";
  ExpectRefused({.path = "torn.safetensors"}, contract::kExitBadData,
                HasSubstr("torn.safetensors"));
  ExpectRefused({.path = "digits.csv", .step = 1}, contract::kExitBadConfig,
                HasSubstr("is a file, which has no steps"));
}

TEST_F(StartFromTest, WorkersThatSeeDifferentFilesAreRefused) {
  WorkerConfig config = job_.config;
  config.checkpoint.directory = "first";
  config.checkpoint.every_steps = 5;
  config.trainer.seed = 2;
  ExpectRefusedOnTwoDisks(
      {.path = "first", .step = 5},
      [&](const std::filesystem::path& other) {
        SessionOptions there = job_.options;
        there.workspace = other;
        TrainUndisturbed(config, there, 2);
      },
      contract::kExitBadConfig,
      Eq("spec.trainer.startFrom: worker 1: first: holds other files than worker 0 has there; all "
         "workers must see the same"));
}

TEST_F(StartFromTest, AFileThatOneWorkerLacksOrHasInPartsIsNamedOnAll) {
  const std::string newest =
      checkpoint::ShardFileName({.step = 13, .round = 1, .world_size = 2}, 1);
  ExpectRefusedOnTwoDisks(
      {.path = "first"},
      [&](const auto& other) { std::filesystem::remove(other / "first" / newest); },
      contract::kExitBadData,
      AllOf(HasSubstr("spec.trainer.startFrom: worker 1: 1 of 2 files are missing in "),
            HasSubstr(newest)));
  ExpectRefusedOnTwoDisks(
      {.path = "first"},
      [&](const auto& other) { std::filesystem::resize_file(other / "first" / newest, 1000); },
      contract::kExitBadData,
      AllOf(HasSubstr("spec.trainer.startFrom: worker 1: "), HasSubstr(newest)));
}

TEST_F(StartFromTest, AJobThatWouldWriteOverWhatItStartsFromIsRefused) {
  job_.config.checkpoint.directory = "./first";
  const std::string file = checkpoint::ShardFileName({.step = 5, .round = 1, .world_size = 2}, 0);
  for (const std::string& path : {std::string("first"), "first/" + file}) {
    Cluster cluster(From({.path = path}), job_.options);
    cluster.Start(1);  // and it is never ready
    const Ending ending = cluster.WaitForEndings().front();
    EXPECT_EQ(ending.exit_code, contract::kExitBadConfig);
    EXPECT_THAT(ending.message, AllOf(HasSubstr("spec.trainer.startFrom.path: "),
                                      EndsWith("another spec.checkpoint.directory")));
  }
  EXPECT_TRUE(std::filesystem::exists(job_.workspace() / "first" / file));
}

TEST_F(StartFromTest, AJobThatWouldHaveEndedBeforeIsRefused) {
  ExpectRefused({.path = "first", .take = StartFromTake::kEverything}, contract::kExitBadConfig,
                HasSubstr("it is of step 13, and this job ends after 13: train for longer"));
}

// The first job's loss, above 1, would be an accuracy that is never reached.
TEST_F(StartFromTest, HowEvaluationsCameAlongIsTheJobsOwn) {
  WorkerConfig slow = job_.config;
  slow.checkpoint.directory = "slow";
  slow.trainer.optimizer.sgd->learning_rate = 1e-6;
  slow.trainer.steps = 2;
  const Finished before = TrainUndisturbed(slow, job_.options);
  ASSERT_GT(before.evaluation.value().loss, 1);
  WorkerConfig config = From({.path = "slow", .take = StartFromTake::kEverything});
  config.trainer.evaluation.metric = training::v1alpha1::Metric::kAccuracy;
  config.trainer.evaluation.early_stop = training::v1alpha1::EarlyStop{.patience = 2};
  EXPECT_EQ(TrainUndisturbed(config, job_.options).steps, 13);
}

}  // namespace
}  // namespace ringmaster::train

// Synchronised batch norm in training: the statistics are the whole batch's, whatever the shards
// and the workers, with the same bits for every number of workers.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/graph/requirements.h"
#include "runtime/train/shard_runner.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using ::testing::Contains;
using testing::DigitsJob;
using ::testing::HasSubstr;
using testing::TrainUndisturbed;
using training::v1alpha1::BatchNormOver;

// 26 samples in 8 shards, of 3 or 4, unless a test says otherwise.
class SynchronisedTest : public ::testing::Test {
 protected:
  SynchronisedTest() { job_.config.trainer.model.batch_norm = BatchNormOver::kSynchronised; }

  Finished Train(int world) {
    std::filesystem::remove_all(job_.checkpoints());
    return TrainUndisturbed(job_.config, job_.options, world);
  }

  // The loss of each step, by one worker.
  std::vector<double> Losses(int shards, BatchNormOver over) {
    std::filesystem::remove_all(job_.checkpoints());
    job_.config.trainer.batch.shards = shards;
    job_.config.trainer.model.batch_norm = over;
    Cluster cluster(job_.config, job_.options);
    cluster.Start(1);
    cluster.Announce();
    cluster.WaitUntilFinished();
    std::vector<double> losses;
    for (const Progress& progress : cluster.EventsOf<Progress>(0)) {
      if (progress.step > std::ssize(losses)) losses.push_back(progress.loss);
    }
    return losses;
  }

  Workload Loaded() { return Workload::Load(job_.config.trainer, job_.options.workspace).value(); }

  DigitsJob job_;
};

TEST_F(SynchronisedTest, EveryNumberOfWorkersTrainsTheSameWeights) {
  const Finished alone = Train(1);
  EXPECT_GT(alone.evaluation->accuracy, 0.5) << "it learns";
  for (const int world : {2, 3, 4, 8}) {
    const Finished together = Train(world);
    EXPECT_EQ(together.weights_sha256, alone.weights_sha256) << world << " workers";
    EXPECT_EQ(together.evaluation, alone.evaluation) << world << " workers";
    EXPECT_EQ(together.loss, alone.loss) << world << " workers";
  }
  job_.config.trainer.model.batch_norm.reset();
  EXPECT_NE(Train(1).weights_sha256, alone.weights_sha256) << "shards' own statistics";
}

TEST_F(SynchronisedTest, LossesAreThoseOfOneShardOfTheWholeBatch) {
  job_.config.trainer.steps = 10;
  const std::vector<double> whole = Losses(1, BatchNormOver::kPerShard),
                            apart = Losses(4, BatchNormOver::kPerShard),
                            together = Losses(4, BatchNormOver::kSynchronised);
  ASSERT_EQ(whole.size(), 10U);
  ASSERT_EQ(together.size(), 10U);
  double furthest = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(together[i], whole[i], 2e-5 * (1 + whole[i])) << "step " << i + 1;
    furthest = std::max(furthest, std::abs(apart[i] - whole[i]));
  }
  EXPECT_GT(furthest, 1e-2) << "a shard's own statistics would have been seen";
}

TEST_F(SynchronisedTest, BucketsCompressionAndTheRingGoOnBehindIt) {
  job_.config.trainer.gradients.bucket_bytes = 8192;
  const std::string exact = Train(1).weights_sha256;
  EXPECT_EQ(Train(3).weights_sha256, exact);
  job_.config.trainer.gradients.bf16.emplace();
  EXPECT_EQ(Train(3).weights_sha256, Train(1).weights_sha256);
  job_.config.trainer.gradients.bf16.reset();
  job_.config.trainer.batch.shards = 0;
  EXPECT_EQ(Train(3).weights_sha256, Train(3).weights_sha256);
}

// The others are at the first sum of step 10, which the second never comes to.
TEST_F(SynchronisedTest, AWorkerLostWhileOthersWaitForItsSumsChangesNoBit) {
  const Finished undisturbed = Train(1);
  std::filesystem::remove_all(job_.checkpoints());
  job_.config.checkpoint.every_steps = 4;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.RunTo(1, 9);
  cluster.WaitForCheckpoint(8);
  cluster.Kill(1);
  for (const int survivor : {0, 2}) {
    cluster.WaitUntil("a survivor reports",
                      [&] { return !cluster.EventsOf<PeerLost>(survivor).empty(); });
    EXPECT_THAT(cluster.EventsOf<PeerLost>(survivor).front().message, HasSubstr("rank 1"));
  }
  // With one worker fewer, who then holds more shards at once; then with as many as shards.
  cluster.Start(3);
  cluster.Shrink(2);
  cluster.RunTo(0, 11);
  cluster.Kill(0);
  cluster.Start(8);
  cluster.Announce();
  const Finished finished = cluster.WaitUntilFinished();
  EXPECT_EQ(finished.weights_sha256, undisturbed.weights_sha256);
  EXPECT_EQ(finished.evaluation, undisturbed.evaluation);
}

TEST_F(SynchronisedTest, AStepThatDivergesIsExplained) {
  job_.config.trainer.optimizer.sgd->learning_rate = 1e30;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  for (const Ending& ending : cluster.WaitForEndings()) {
    EXPECT_EQ(ending.exit_code, contract::kExitDiverged);
    EXPECT_THAT(ending.message,
                AllOf(HasSubstr("in step 2"), HasSubstr("; on worker 0 the first came out of ")));
  }
}

TEST_F(SynchronisedTest, ANetworkWithoutBatchNormIsRefused) {
  job_.config.trainer.model.zoo->name = "lenet";
  job_.config.trainer.model.zoo->dropout.reset();
  job_.UseImages({.side = 16});
  const absl::Status status = Loaded().CheckModel(kernels::Selection::kFastest);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "spec.trainer.model.batchNorm: lenet has no batch norm to synchronise; leave it out");
}

TEST_F(SynchronisedTest, MemoryIsCountedForAllShardsOfAWorker) {
  job_.config.trainer.data.csv->hold_out_every = 0;
  Workload workload = Loaded();
  ASSERT_TRUE(workload.CheckModel(kernels::Selection::kFastest).ok());
  const auto step = graph::RequirementsOf(workload.layout().graph,
                                          workload.StepOptions(kernels::Selection::kFastest));
  const auto of_a_shard =
      static_cast<int64_t>(step->arena_bytes + sizeof(float) * workload.layout().parameter_floats);
  EXPECT_TRUE(workload.CheckTogether(kernels::Selection::kFastest, 4, 4 * of_a_shard).ok());
  const absl::Status status =
      workload.CheckTogether(kernels::Selection::kFastest, 4, 4 * of_a_shard - 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status),
              HasSubstr("for gradients of each of 4 shards of 4 samples, which synchronised batch "
                        "norm has this worker compute at once; give the job more workers"));
}

TEST_F(SynchronisedTest, WhatEarlierRoundsTookIsGivenBackBeforeMemoryIsCounted) {
  Workload workload = Loaded();
  ASSERT_TRUE(workload.CheckModel(kernels::Selection::kFastest).ok());
  std::vector<float> weights(workload.layout().parameter_floats);
  ShardRunner runner(workload, kernels::Selection::kFastest, weights);
  const auto add = [](auto...) { return absl::OkStatus(); };
  // To run no shards is right only where none is prepared.
  const auto holds_nothing = [&] { return runner.RunTogether({}, {}, {}, add).ok(); };
  int asked = 0;
  const auto memory = [&]() -> std::optional<int64_t> {
    ++asked;
    EXPECT_TRUE(holds_nothing());
    return std::nullopt;
  };
  for (const int shards : {4, 2, 2}) {
    ASSERT_TRUE(runner.PrepareTogether(shards, memory).ok());
    EXPECT_FALSE(holds_nothing());
  }
  EXPECT_EQ(asked, 3);
}

TEST_F(SynchronisedTest, ABudgetForAStepIsSharedByAWorkersShards) {
  Workload workload = Loaded();
  ASSERT_TRUE(workload.CheckModel(kernels::Selection::kFastest).ok());
  const auto step = graph::RequirementsOf(workload.layout().graph,
                                          workload.StepOptions(kernels::Selection::kFastest));
  // Enough for two shards at once; of four each computes something again.
  job_.config.trainer.step_memory_bytes = static_cast<int64_t>(4 * step->arena_bytes * 9 / 10);
  const auto four = graph::RequirementsOf(workload.layout().graph,
                                          workload.StepOptions(kernels::Selection::kFastest, 4));
  EXPECT_LE(four->arena_bytes, step->arena_bytes * 9 / 10);
  EXPECT_THAT(four->implementation_names, Contains(HasSubstr("again/")));
  const std::string kept = Train(4).weights_sha256;
  EXPECT_EQ(Train(2).weights_sha256, kept);
  job_.config.trainer.step_memory_bytes = static_cast<int64_t>(step->arena_bytes);
  std::filesystem::remove_all(job_.checkpoints());
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  cluster.Announce();
  const Ending ending = cluster.WaitForEndings().front();
  EXPECT_EQ(ending.exit_code, contract::kExitNoResource);
  EXPECT_THAT(ending.message,
              AllOf(HasSubstr("spec.trainer.stepMemoryBytes: a step's values take "),
                    HasSubstr("for each of 8 shards of 4 samples, which synchronised batch norm "
                              "has this worker compute at once; allow more, or give the job more "
                              "workers")));
  EXPECT_EQ(Train(8).weights_sha256, kept);
}

}  // namespace
}  // namespace ringmaster::train

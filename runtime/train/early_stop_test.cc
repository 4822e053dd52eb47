// Early stop and the checkpoints of the best evaluations, over whole runs.
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::Cluster;
using testing::DigitsJob;
using ::testing::HasSubstr;
using testing::TrainUndisturbed;
using training::v1alpha1::EarlyStop;

// An epoch has a little less than five steps: evaluations follow steps 5, 10, 15, 20 ... None is
// better than the first by as much as is asked for.
class EarlyStopTest : public ::testing::Test {
 protected:
  EarlyStopTest() {
    job_.config.trainer.steps = 60;
    job_.config.trainer.evaluation.early_stop = EarlyStop{.patience = 2, .min_delta = 100};
  }

  Finished Undisturbed(int world) {
    std::filesystem::remove_all(job_.checkpoints());
    const Finished finished = TrainUndisturbed(job_.config, job_.options, world);
    std::filesystem::remove_all(job_.checkpoints());
    return finished;
  }

  static void ExpectSame(const Finished& finished, const Finished& expected) {
    EXPECT_EQ(finished.steps, expected.steps);
    EXPECT_EQ(finished.weights_sha256, expected.weights_sha256);
    EXPECT_EQ(finished.evaluation, expected.evaluation);
    EXPECT_EQ(finished.stopped_early, expected.stopped_early);
  }

  Ending EndingOfOneRun() {
    Cluster cluster(job_.config, job_.options);
    cluster.Start(1);
    cluster.WaitUntil("ready, or refused",
                      [&] { return cluster.EndingOf(0) || !cluster.Events(0).empty(); });
    if (!cluster.EndingOf(0)) cluster.Announce();
    return cluster.WaitForEndings().front();
  }

  DigitsJob job_;
};

TEST_F(EarlyStopTest, ComesAtTheSameStepForAnyNumberOfWorkers) {
  const Finished alone = Undisturbed(1);
  EXPECT_EQ(alone.steps, 15);
  EXPECT_EQ(alone.evaluation->step, 15);
  EXPECT_THAT(alone.stopped_early,
              HasSubstr("the loss has not fallen by more than 100 in 2 evaluations, since step 5"));
  ExpectSame(Undisturbed(3), alone);
}

TEST_F(EarlyStopTest, IsNoneWherePatienceEndsWithTheLastStep) {
  job_.config.trainer.steps = 15;
  EXPECT_EQ(Undisturbed(1).stopped_early, "");
}

TEST_F(EarlyStopTest, ALossOnTheWayDoesNotMoveIt) {
  const Finished expected = Undisturbed(1);
  job_.config.checkpoint.every_steps = 4;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(3);
  cluster.RunTo(1, 13);  // one of the two evaluations has been
  cluster.WaitForCheckpoint(12);
  cluster.Kill(1);
  cluster.Start(3);
  cluster.Announce();
  ExpectSame(cluster.WaitUntilFinished(), expected);
}

TEST_F(EarlyStopTest, ALossAfterItTrainsNoFurther) {
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  const Finished expected = cluster.WaitUntilFinished();
  cluster.Kill(0);
  cluster.Kill(1);
  cluster.Start(2);
  cluster.Announce();
  ExpectSame(cluster.WaitUntilFinished(), expected);
}

// What was measured label by label is part of the checkpoint, too.
TEST_F(EarlyStopTest, GoesByTheMeanAreaOfSeveralLabelsAsWell) {
  {
    std::ofstream out(job_.data());
    for (int row = 0; row < 157; ++row) {
      out << row % 2 << "," << (row % 7 == 0 ? 1 : 0);
      for (int i = 0; i < 64; ++i) out << "," << (row * 31 + i * 17) % 23 % 16;
      out << "\n";
    }
  }
  training::v1alpha1::CsvData& data = *job_.config.trainer.data.csv;
  data.header = false;
  data.classes.reset();
  data.labels = 2;
  job_.config.trainer.evaluation.metric = training::v1alpha1::Metric::kAuroc;
  Cluster cluster(job_.config, job_.options);
  cluster.Start(2);
  cluster.Announce();
  const Finished expected = cluster.WaitUntilFinished();
  EXPECT_THAT(expected.stopped_early, HasSubstr("the AUROC has not risen by more than 100"));
  ASSERT_EQ(expected.labels.size(), 2U);
  EXPECT_EQ(expected.labels[1].name, "1");
  EXPECT_EQ(expected.labels[1].auroc, expected.evaluation->label_aurocs[1]);
  cluster.Kill(0);
  cluster.Kill(1);
  cluster.Start(2);
  cluster.Announce();
  ExpectSame(cluster.WaitUntilFinished(), expected);
}

TEST_F(EarlyStopTest, NeedsHeldOutSamples) {
  job_.config.trainer.data.csv->hold_out_every = 1000;
  const Ending ending = EndingOfOneRun();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_THAT(ending.message, HasSubstr("none of the data's 157 is held out"));
}

TEST_F(EarlyStopTest, NeedsItsMetric) {
  job_.config.trainer.evaluation.metric = training::v1alpha1::Metric::kAuroc;
  const Ending ending = EndingOfOneRun();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_THAT(ending.message, HasSubstr("AUROC needs samples of 2 classes"));
}

TEST(BestCheckpointTest, IsWrittenAfterEachEvaluationThatIsTheBestSoFar) {
  DigitsJob job;
  job.config.trainer.steps = 60;
  job.config.trainer.evaluation.metric = training::v1alpha1::Metric::kAccuracy;
  job.config.checkpoint.keep_best = true;
  Cluster cluster(job.config, job.options);
  cluster.Start(2);
  cluster.Announce();
  const Finished finished = cluster.WaitUntilFinished();
  std::map<int64_t, double> accuracies;
  for (const Progress& progress : cluster.EventsOf<Progress>(0)) {
    if (progress.evaluation) accuracies[progress.evaluation->step] = progress.evaluation->accuracy;
  }
  std::map<int64_t, double> expected = {{finished.steps, finished.evaluation->accuracy}};
  double best = 0;
  for (const auto& [step, accuracy] : accuracies) {
    if (accuracy <= best) continue;
    best = accuracy;
    expected[step] = accuracy;
  }
  std::map<int64_t, double> written;
  for (const ShardDurable& durable : cluster.EventsOf<ShardDurable>(0)) {
    written[durable.step] = durable.metric_value.value();
  }
  EXPECT_EQ(written, expected);
  EXPECT_GT(written.size(), 1U);
  EXPECT_LT(written.size(), accuracies.size()) << "they are soon all right";
}

}  // namespace
}  // namespace ringmaster::train

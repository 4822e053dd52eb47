// The promise of the ordered sum: the trained weights do not depend on the number of workers. Each
// of the rules that keep it is switched off once, to see that the comparison would notice.
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/graph/requirements.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {
namespace {

using testing::DigitsJob;
using testing::TrainUndisturbed;

Finished Train(const DigitsJob& job, int world) {
  std::filesystem::remove_all(job.checkpoints());
  return TrainUndisturbed(job.config, job.options, world);
}

TEST(SameBitsTest, OneToFourWorkersTrainTheSameWeights) {
  const DigitsJob job;
  const Finished alone = Train(job, 1);
  EXPECT_EQ(alone.steps, 13);
  EXPECT_GT(alone.evaluation->accuracy, 0.5) << "it learns";
  for (const int world : {2, 3, 4}) {
    const Finished together = Train(job, world);
    EXPECT_EQ(together.weights_sha256, alone.weights_sha256) << world << " workers";
    EXPECT_EQ(together.evaluation, alone.evaluation) << world << " workers";
    EXPECT_EQ(together.loss, alone.loss) << world << " workers";
  }
}

TEST(SameBitsTest, AsManyWorkersAsShardsTrainTheSameWeights) {
  const DigitsJob job;
  EXPECT_EQ(Train(job, 8).weights_sha256, Train(job, 1).weights_sha256);
}

TEST(SameBitsTest, AdamAndAScheduleKeepTheBitsToo) {
  DigitsJob job;
  job.config.trainer.optimizer.sgd.reset();
  job.config.trainer.optimizer.adam.emplace();
  job.config.trainer.optimizer.adam->learning_rate = 0.002;
  job.config.trainer.schedule.emplace();
  job.config.trainer.schedule->warmup_steps = 3;
  job.config.trainer.schedule->cosine.emplace();
  EXPECT_EQ(Train(job, 3).weights_sha256, Train(job, 1).weights_sha256);
}

void UseATransformerOnText(DigitsJob& job, int layers) {
  {
    std::ofstream text(job.workspace() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "to be, or not to be " << i * 37 % 101 << "; ";
  }
  training::v1alpha1::TrainerConfig& trainer = job.config.trainer;
  trainer.data.csv.reset();
  trainer.data.text.emplace();
  trainer.data.text->path = "text.txt";
  trainer.data.text->window = 16;
  trainer.model.zoo.reset();
  trainer.model.transformer.emplace();
  trainer.model.transformer->layers = layers;
  trainer.model.transformer->heads = 2;
  trainer.model.transformer->width = 16;
  trainer.model.transformer->dropout = 0.1;
}

TEST(SameBitsTest, ATransformerOnTextKeepsTheBitsToo) {
  DigitsJob job;
  UseATransformerOnText(job, 1);
  const Finished alone = Train(job, 1);
  EXPECT_GT(alone.evaluation->accuracy, 0);
  const Finished together = Train(job, 3);
  EXPECT_EQ(together.weights_sha256, alone.weights_sha256);
  EXPECT_EQ(together.evaluation, alone.evaluation);
}

// What a step holds of its own, of the largest shard.
size_t StepBytes(const DigitsJob& job) {
  auto workload = Workload::Load(job.config.trainer, job.options.workspace);
  EXPECT_TRUE(workload.ok() && workload->CheckModel(job.options.kernels).ok());
  return graph::RequirementsOf(workload->layout().graph, workload->StepOptions(job.options.kernels))
      ->arena_bytes;
}

// Layer norms and GELUs are cheap to compute again; a LeNet keeps nothing that is.
TEST(SameBitsTest, LessMemoryForAStepTrainsTheSameWeights) {
  DigitsJob job;
  UseATransformerOnText(job, 3);
  const size_t whole = StepBytes(job);
  const Finished kept = Train(job, 2);
  job.config.trainer.step_memory_bytes = static_cast<int64_t>(whole * 9 / 10);
  EXPECT_LE(StepBytes(job), whole * 9 / 10);
  const Finished again = Train(job, 2);
  EXPECT_EQ(again.weights_sha256, kept.weights_sha256);
  EXPECT_EQ(again.loss, kept.loss);
}

struct Rule {
  const char* name;
  bool DebugSwitches::*off;
};

class SwitchedOffTest : public ::testing::TestWithParam<Rule> {};

TEST_P(SwitchedOffTest, ChangesTheDigestWithTheWorldSize) {
  DigitsJob job;
  const std::string kept = Train(job, 3).weights_sha256;
  job.options.debug.*GetParam().off = true;
  const std::string alone = Train(job, 1).weights_sha256;
  const std::string together = Train(job, 3).weights_sha256;
  EXPECT_NE(alone, together) << "the comparison of digests does not notice";
  EXPECT_NE(together, kept);
}

INSTANTIATE_TEST_SUITE_P(Rules, SwitchedOffTest,
                         ::testing::Values(Rule{"TreeOrder", &DebugSwitches::arrival_order},
                                           Rule{"StreamKeys", &DebugSwitches::local_streams},
                                           Rule{"OrderedStatistics",
                                                &DebugSwitches::local_statistics}),
                         [](const auto& info) { return info.param.name; });

TEST(PlainRingTest, TrainsWithoutShards) {
  DigitsJob job;
  job.config.trainer.batch.shards = 0;
  const Finished three = Train(job, 3);
  EXPECT_GT(three.evaluation->accuracy, 0.5);
  EXPECT_EQ(three.weights_sha256, Train(job, 3).weights_sha256) << "the same world, the same bits";
}

}  // namespace
}  // namespace ringmaster::train

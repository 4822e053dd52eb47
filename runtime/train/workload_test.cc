#include "runtime/train/workload.h"

#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/graph/requirements.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::DigitsJob;
using ::testing::HasSubstr;

constexpr int64_t kEnough = int64_t{1} << 30;

absl::Status Check(const DigitsJob& job, int64_t memory) {
  absl::StatusOr<Workload> workload = Workload::Load(job.config.trainer, job.options.workspace);
  if (!workload.ok()) return workload.status();
  return workload->CheckModel(kernels::Selection::kFastest, device::MemoryRoom{memory});
}

// The least memory that is enough.
int64_t Least(const DigitsJob& job) {
  int64_t little = 0, enough = kEnough;
  while (enough - little > 1) {
    const int64_t middle = little + (enough - little) / 2;
    (Check(job, middle).ok() ? enough : little) = middle;
  }
  return enough;
}

TEST(WorkloadTest, AModelThatFitsTheMemoryIsTaken) {
  EXPECT_TRUE(Check(DigitsJob(), kEnough).ok());
}

TEST(WorkloadTest, AShardOfOneSampleIsNotSpokenOfAsMany) {
  DigitsJob job;
  job.config.trainer.batch.shards = job.config.trainer.batch.size;
  EXPECT_THAT(Message(Check(job, 100'000)), HasSubstr("the values of a shard of 1 sample, the "));
}

TEST(WorkloadTest, AModelTooLargeForTheMemoryIsRefusedWithThePlansNumbers) {
  const absl::Status status = Check(DigitsJob(), 100'000);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  // 58,524 parameters of the four classes, 4 x 4 bytes each and rounded up to cache lines.
  EXPECT_THAT(Message(status), HasSubstr("0.10 MB are available: 0.94 MB for weights and "
                                         "gradients of 58,524 parameters, 0.23 MB for what the "
                                         "optimizer keeps, "));
  // 26 samples in 8 shards.
  EXPECT_THAT(Message(status), HasSubstr("MB for the values of a shard of 4 samples, the largest "
                                         "of which is "));
  EXPECT_THAT(Message(status), HasSubstr("cut the batch into more shards (batch.shards)"));
}

TEST(WorkloadTest, SumsOfGradientsAreCountedUnlessAWorkerMayBeAloneWithTheBatch) {
  DigitsJob job;
  const auto counted = [&](const std::string& copies) {
    EXPECT_THAT(Message(Check(job, 100'000)),
                HasSubstr(" are available: " + copies + " for weights and gradients of "));
  };
  for (const int shards : {0, 1}) {
    job.config.trainer.batch.shards = shards;
    counted("0.47 MB");
  }
  job.config.trainer.gradients.bf16.emplace();
  counted("0.70 MB");
  job.config.trainer.batch.shards = 2;
  counted("0.70 MB");
  job.config.trainer.gradients.bf16.reset();
  counted("0.94 MB");
}

TEST(WorkloadTest, ALossOfClassesIsRefusedForIndependentLabels) {
  DigitsJob job;
  {
    std::ofstream out(job.data());
    out << "one,two";
    for (int i = 0; i < 64; ++i) out << ",p" << i;
    for (int row = 0; row < 40; ++row) {
      out << "\n1,0";
      for (int i = 0; i < 64; ++i) out << "," << (row + i) % 17;
    }
  }
  job.config.trainer.data.csv->classes.reset();
  job.config.trainer.data.csv->labels = 2;
  EXPECT_TRUE(Check(job, kEnough).ok()) << Message(Check(job, kEnough));
  job.config.trainer.loss = training::v1alpha1::LossFunction::kMeanSquare;
  const absl::Status status = Check(job, kEnough);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("spec.trainer.loss: is of classes"));
}

TEST(WorkloadTest, AModelThatItsContainerNeverHasRoomForIsNotToBeTriedAgain) {
  const DigitsJob job;
  const int64_t least = Least(job);
  Workload workload = Workload::Load(job.config.trainer, job.options.workspace).value();
  const auto check = [&](int64_t available, int64_t most) {
    return workload.CheckModel(kernels::Selection::kFastest, device::MemoryRoom{available, most});
  };
  EXPECT_TRUE(check(least, least).ok());
  const absl::Status now = check(least - 1, least);
  EXPECT_EQ(now.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(now), HasSubstr(fmt::format(" of memory, {} are available: ",
                                                  WithUnit(static_cast<uint64_t>(least - 1)))));
  const absl::Status ever = check(least - 2, least - 1);
  EXPECT_EQ(ever.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(ever), HasSubstr(fmt::format(" of memory, its container has a limit of {}: ",
                                                   WithUnit(static_cast<uint64_t>(least - 1)))));
}

// How small a share becomes depends on how many workers there are.
TEST(WorkloadTest, AShareOfABatchWithoutShardsThatHasNoRoomIsToBeTriedAgain) {
  DigitsJob job;
  job.config.trainer.batch.shards = 0;
  const int64_t little = Least(job) - 1;
  Workload workload = Workload::Load(job.config.trainer, job.options.workspace).value();
  EXPECT_EQ(
      workload.CheckModel(kernels::Selection::kFastest, device::MemoryRoom{little, little}).code(),
      absl::StatusCode::kResourceExhausted);
  job.config.trainer.step_memory_bytes = 1000;
  EXPECT_EQ(Check(job, kEnough).code(), absl::StatusCode::kResourceExhausted);
}

TEST(WorkloadTest, TheOptimizersMemoryIsCounted) {
  DigitsJob job;
  training::v1alpha1::Optimizer& optimizer = job.config.trainer.optimizer;
  optimizer.sgd->momentum = 0;
  const int64_t with_nothing_kept = Least(job);
  optimizer.sgd->momentum = 0.9;
  const int64_t one = Least(job) - with_nothing_kept;
  EXPECT_GE(one, 4 * 58'524);
  EXPECT_LT(one, 4 * 59'000);  // each parameter begins at a cache line
  optimizer.sgd.reset();
  optimizer.adam.emplace();
  EXPECT_EQ(Least(job) - with_nothing_kept, 2 * one);
}

TEST(WorkloadTest, EvaluationsMemoryIsCounted) {
  DigitsJob job;
  const int64_t least = Least(job);
  Workload workload = Workload::Load(job.config.trainer, job.options.workspace).value();
  ASSERT_EQ(workload.held_out().size(), 31U);
  const auto evaluation = graph::RequirementsOf(workload.Build(nn::Mode::kEvaluation, 31)->graph,
                                                {.kernels = kernels::Selection::kFastest});
  ASSERT_TRUE(evaluation.ok());
  // The scores of four classes, the loss, and how many were right.
  EXPECT_EQ(evaluation->output_bytes, sizeof(float) * (31 * 4 + 2));
  EXPECT_THAT(Message(Check(job, least - 1)), HasSubstr(" MB for evaluating 31 samples at once, "));
  job.config.trainer.data.csv->hold_out_every = 0;
  EXPECT_EQ(least - Least(job),
            static_cast<int64_t>(evaluation->arena_bytes + evaluation->output_bytes));
}

TEST(WorkloadTest, AsManySamplesAreEvaluatedAtOnceAsTheNetworkAllows) {
  DigitsJob job;
  const auto at_once = [&](int32_t channels) {
    training::v1alpha1::Layer wide, pool, flatten, last;
    wide.conv2d = {.channels = channels, .kernel = 1};
    pool.adaptive_average_pool.emplace().size = 1;
    flatten.flatten.emplace();
    last.linear.emplace().features = 4;
    job.config.trainer.model.zoo.reset();
    job.config.trainer.model.sequential.emplace().layers = {wide, pool, flatten, last};
    Workload workload = Workload::Load(job.config.trainer, job.options.workspace).value();
    const absl::Status checked = workload.CheckModel(kernels::Selection::kFastest);
    EXPECT_TRUE(checked.ok()) << Message(checked);
    return workload.evaluated_at_once();
  };
  // 64 points of 4 bytes each: 4096 channels are a megabyte.
  EXPECT_EQ(at_once(4096), 64);
  EXPECT_EQ(at_once(4097), 32);
  EXPECT_EQ(at_once(16384), 16);
}

TEST(WorkloadTest, AStepThatCannotDoWithItsMemoryIsRefusedWithNumbers) {
  DigitsJob job;
  job.config.trainer.step_memory_bytes = 1000;
  const absl::Status status = Check(job, kEnough);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("spec.trainer.stepMemoryBytes: a step's values take "));
  EXPECT_THAT(Message(status), HasSubstr("the budget is 1,000, for a shard of 4 samples; allow "
                                         "more, or cut the batch into more shards"));
}

TEST(WorkloadTest, TheManifestsSmoothingIsTheTrainingLosssAlone) {
  DigitsJob job;
  job.config.trainer.label_smoothing = 0.125;
  const absl::StatusOr<Workload> workload =
      Workload::Load(job.config.trainer, job.options.workspace);
  ASSERT_TRUE(workload.ok()) << Message(workload.status());
  for (const auto& [mode, smoothing] : {std::pair(nn::Mode::kTraining, "{smoothing=0.125}"),
                                        std::pair(nn::Mode::kEvaluation, "{smoothing=0}")}) {
    const absl::StatusOr<nn::Model> model = workload->Build(mode, 2);
    ASSERT_TRUE(model.ok()) << Message(model.status());
    EXPECT_THAT(ToString(model->graph), HasSubstr(smoothing));
  }
}

TEST(WorkloadTest, TheFingerprintTellsAnotherConfigurationByWhatDiffersFromDefaults) {
  DigitsJob job;
  const auto fingerprint = [&job] {
    const absl::StatusOr<Workload> workload =
        Workload::Load(job.config.trainer, job.options.workspace);
    return workload.ok() ? workload->Fingerprint() : Message(workload.status());
  };
  const std::string plain = fingerprint();
  EXPECT_EQ(plain.size(), 64u) << plain;
  EXPECT_EQ(fingerprint(), plain);
  ++job.config.trainer.seed;
  EXPECT_NE(fingerprint(), plain);
}

TEST(WorkloadTest, LargerShardsNeedMoreMemory) {
  DigitsJob job;
  job.config.trainer.batch.size = 4096;
  job.config.trainer.batch.shards = 64;
  constexpr int64_t kSome = 8'000'000;
  EXPECT_TRUE(Check(job, kSome).ok());
  job.config.trainer.batch.shards = 1;
  EXPECT_EQ(Check(job, kSome).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ringmaster::train

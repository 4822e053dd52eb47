// What a whole training step allocates: computing shards, summing over ranks, clipping, the
// optimizer, schedules and metrics. A program of its own, because it replaces operator new.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/count_allocations.h"
#include "common/metrics.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/train/progress_meter.h"
#include "runtime/train/step_runner.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/trainer_metrics.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using collectives::testing::Wires;
using training::v1alpha1::TrainerConfig;

struct AllocationCase {
  std::string name;
  int ranks = 1;
  int shards = 1;
  std::function<void(TrainerConfig&)> change = [](TrainerConfig&) {};
  Wires wires = Wires::kShared;
  collectives::Algorithm algorithm = collectives::Algorithm::kAuto;
};

// A rank of the job, with all that takes part in its steps.
class CountedRank {
 public:
  CountedRank(const testing::DigitsJob& job, Communicator& communicator)
      : workload_(Workload::Load(job.config.trainer, job.options.workspace).value()) {
    EXPECT_TRUE(workload_.CheckModel(kKernels).ok());
    replica_.emplace(Replica::Create(workload_).value());
    shards_.emplace(workload_, kKernels, replica_->weights());
    steps_ = StepRunner::Create(
                 {.workload = workload_, .replica = *replica_, .shards = *shards_, .debug = debug_},
                 *job.config.trainer.batch.shards, communicator)
                 .value();
    meter_.emplace(workload_, metrics_, std::chrono::hours(1));
  }

  // As RoundRunner's.
  void Step() {
    meter_->StepBegins();
    Expect(steps_->Compute([this] { return StepFlags{.drain = replica_->step() > 1'000'000}; }));
    meter_->ShardsComputed(steps_->own_samples());
    const auto traffic = steps_->Reduce();
    Expect(traffic.status());
    if (!traffic.ok()) return;
    meter_->Reduced(*traffic);
    const bool finite = steps_->finite();
    EXPECT_TRUE(finite);
    Expect(steps_->Commit(!finite));
    meter_->Committed(*replica_, !finite);
    EXPECT_FALSE(meter_->IsDue());
  }

 private:
  // oneDNN makes a table of arguments for each of its calls (runtime/graph/allocation_test.cc).
  static constexpr kernels::Selection kKernels = kernels::Selection::kReference;

  static void Expect(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

  const DebugSwitches debug_;
  metrics::Registry registry_;
  TrainerMetrics metrics_{registry_};
  Workload workload_;
  std::optional<Replica> replica_;
  std::optional<ShardRunner> shards_;
  std::unique_ptr<StepRunner> steps_;
  std::optional<ProgressMeter> meter_;
};

class TrainAllocationTest : public ::testing::TestWithParam<AllocationCase> {};

// What a rank says to one that it has waited for, after a hundredth of a second and after a tenth,
// is no part of a step and may take memory: a run of steps without any such wait counts.
TEST_P(TrainAllocationTest, AStepAfterTheSecondAllocatesNothing) {
  constexpr int kSteps = 6;  // an epoch begins in each run
  testing::DigitsJob job;
  job.config.trainer.steps = 1'000'000;
  job.config.trainer.batch.shards = GetParam().shards;
  GetParam().change(job.config.trainer);
  std::barrier together(GetParam().ranks);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int64_t least = std::numeric_limits<int64_t>::max();  // written by rank 0 alone, as what follows
  bool over = false;
  collectives::testing::Group group(GetParam().ranks, GetParam().wires);
  group.options.algorithm = GetParam().algorithm;
  group.Run([&](Communicator& communicator) {
    CountedRank rank(job, communicator);
    rank.Step();
    rank.Step();
    while (!over) {
      together.arrive_and_wait();
      const int64_t before = CountAllocations();
      together.arrive_and_wait();
      for (int step = 0; step < kSteps; ++step) rank.Step();
      together.arrive_and_wait();
      if (communicator.rank() == 0) {
        least = std::min(least, CountAllocations() - before);
        over = least == 0 || std::chrono::steady_clock::now() > deadline;
      }
      together.arrive_and_wait();
    }
  });
  EXPECT_EQ(least, 0);
}

void UseAdamW(TrainerConfig& trainer) {
  trainer.optimizer = {.adam_w = training::v1alpha1::AdamW{.learning_rate = 0.001}};
}

std::vector<AllocationCase> AllocationCases() {
  std::vector<AllocationCase> cases = {
      {.name = "OneWorker"},
      {.name = "OneWorkerOfSeveralShards", .shards = 5},
      {.name = "TwoWorkers", .ranks = 2, .shards = 4},
      {.name = "ThreeWorkersWhoseShardsCrossTheTree", .ranks = 3, .shards = 8},
      {.name = "TwoWorkersOverTcp", .ranks = 2, .shards = 4, .wires = Wires::kTcp},
      {.name = "TwoWorkersOverTls", .ranks = 2, .shards = 4, .wires = Wires::kTls},
  };
  cases.push_back(
      {.name = "BucketsWhileBackwardRuns",
       .ranks = 2,
       .shards = 4,
       .change = [](TrainerConfig& trainer) { trainer.gradients.bucket_bytes = 16 * 1024; }});
  cases.push_back({.name = "FourWorkersByHalving",
                   .ranks = 4,
                   .shards = 8,
                   .algorithm = collectives::Algorithm::kHalvingDoubling});
  cases.push_back(
      {.name = "HalfTheBits", .ranks = 2, .shards = 4, .change = [](TrainerConfig& trainer) {
         trainer.gradients.bf16.emplace();
       }});
  cases.push_back({.name = "SynchronisedBatchNorm",
                   .ranks = 2,
                   .shards = 4,
                   .change = [](TrainerConfig& trainer) {
                     trainer.model.batch_norm = training::v1alpha1::BatchNormOver::kSynchronised;
                   }});
  cases.push_back({.name = "ANormAndASchedule", .change = [](TrainerConfig& trainer) {
                     UseAdamW(trainer);
                     trainer.optimizer.clip.emplace().global_norm = 0.01;
                     trainer.schedule.emplace().warmup_steps = 5;
                     trainer.schedule->cosine.emplace();
                   }});
  cases.push_back({.name = "ABoundForEachValue", .change = [](TrainerConfig& trainer) {
                     UseAdamW(trainer);
                     trainer.optimizer.clip.emplace().value = 1e-3;
                   }});
  cases.push_back({.name = "Lars", .change = [](TrainerConfig& trainer) {
                     trainer.optimizer = {.lars = training::v1alpha1::Lars{.learning_rate = 0.1}};
                   }});
  cases.push_back({.name = "Lamb", .change = [](TrainerConfig& trainer) {
                     trainer.optimizer = {.lamb = training::v1alpha1::Lamb{.learning_rate = 0.01}};
                   }});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Steps, TrainAllocationTest, ::testing::ValuesIn(AllocationCases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace ringmaster::train

// What a whole training step allocates: computing shards, summing over ranks, clipping, the
// optimizer, schedules and metrics. A program of its own, because it replaces malloc.
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/count_allocations.h"
#include "common/metrics.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/device/threads.h"
#include "runtime/graph/requirements.h"
#include "runtime/train/progress_meter.h"
#include "runtime/train/step_runner.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/trainer_metrics.h"

namespace ringmaster::train {
namespace {

using collectives::Algorithm;
using collectives::Communicator;
using collectives::testing::Wires;
using training::v1alpha1::TrainerConfig;

struct AllocationCase {
  std::string name;
  int ranks = 1;
  int shards = 1;
  std::function<void(TrainerConfig&)> change = [](TrainerConfig&) {};
  Wires wires = Wires::kShared;
  Algorithm algorithm = Algorithm::kAuto;
  int nodes = 0;  // that the ranks share, taking turns; 0: each its own
  int image_side = 8;
  bool is_text = false;     // instead of images
  bool has_onednn = false;  // among its kernels
  kernels::Selection kernels = kernels::Selection::kReference;
};

// A rank of the job, with all that takes part in its steps.
class CountedRank {
 public:
  CountedRank(const testing::DigitsJob& job, kernels::Selection kernels, Communicator& communicator)
      : workload_(Workload::Load(job.config.trainer, job.options.workspace).value()) {
    EXPECT_TRUE(workload_.CheckModel(kernels).ok());
    replica_.emplace(Replica::Create(workload_).value());
    shards_.emplace(workload_, kernels, replica_->weights());
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

std::vector<std::string> KernelsOf(const testing::DigitsJob& job, kernels::Selection kernels) {
  Workload workload = Workload::Load(job.config.trainer, job.options.workspace).value();
  EXPECT_TRUE(workload.CheckModel(kernels).ok());
  return graph::RequirementsOf(workload.layout().graph, workload.StepOptions(kernels))
      .value()
      .implementation_names;
}

// Text of so many samples, to train on all of it.
void UseText(testing::DigitsJob& job, int samples) {
  constexpr int kWindow = 24;
  {
    std::ofstream text(job.workspace() / "text.txt");
    for (int i = 0; i <= samples * kWindow; ++i) text << "to be, or not to be: "[i * i % 89 % 21];
  }
  training::v1alpha1::Data& data = job.config.trainer.data;
  data.csv.reset();
  data.text.emplace() = {.path = "text.txt", .window = kWindow, .hold_out = 0};
}

// What a rank says to one that it has waited for, after a hundredth of a second and after a tenth,
// is no part of a step and may take memory. So each step of two epochs is counted in several laps,
// of which one without any such wait is enough. A rank that is alone waits for nobody: it takes
// nothing in any of three laps.
TEST_P(TrainAllocationTest, AStepAfterTheSecondAllocatesNothing) {
  const bool fastest = GetParam().kernels == kernels::Selection::kFastest;
  ASSERT_TRUE(device::SetThreadCount(2).ok());
  if (fastest && !__builtin_cpu_supports("avx2")) GTEST_SKIP() << "our fast kernels need AVX2";
  constexpr int kSteps = 11;  // two epochs; in the sixth step one ends and the other begins
  testing::DigitsJob job;
  job.config.trainer.steps = 1'000'000;
  job.config.trainer.batch.shards = GetParam().shards;
  const int samples = kSteps * static_cast<int>(job.config.trainer.batch.size) / 2;
  if (GetParam().is_text) {
    UseText(job, samples);
  } else {
    job.UseImages({.side = GetParam().image_side, .rows = samples});
  }
  GetParam().change(job.config.trainer);
  if (GetParam().has_onednn && !kCountsMalloc)
    GTEST_SKIP() << "a sanitizer has an operator new of its own";
  EXPECT_THAT(KernelsOf(job, GetParam().kernels),
              ::testing::Each(::testing::Not(
                  ::testing::HasSubstr(GetParam().has_onednn ? "gemm:jit" : "onednn"))));
  std::barrier together(GetParam().ranks);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const bool alone = GetParam().ranks == 1;
  // Of all laps: the least, of a lone rank the most. Written by rank 0 alone, as what follows.
  std::array<int64_t, kSteps> counts;
  counts.fill(alone ? 0 : std::numeric_limits<int64_t>::max());
  int laps = 0;
  bool over = false;
  collectives::testing::Group group(GetParam().ranks, GetParam().wires);
  group.options.algorithm = GetParam().algorithm;
  group.Run([&](Communicator& communicator) {
    if (GetParam().nodes > 0) {
      const std::string node = fmt::format("node {}", communicator.rank() % GetParam().nodes);
      ASSERT_TRUE(communicator.Fit(node).ok());
    }
    CountedRank rank(job, GetParam().kernels, communicator);
    rank.Step();
    rank.Step();
    while (!over) {
      for (int64_t& count : counts) {
        together.arrive_and_wait();
        const int64_t before = CountAllocations();
        together.arrive_and_wait();
        rank.Step();
        together.arrive_and_wait();
        if (communicator.rank() != 0) continue;
        const int64_t taken = CountAllocations() - before;
        count = alone ? std::max(count, taken) : std::min(count, taken);
      }
      if (communicator.rank() == 0) {
        const bool none = std::ranges::all_of(counts, [](int64_t count) { return count == 0; });
        over = alone ? ++laps == 3 : none || std::chrono::steady_clock::now() > deadline;
      }
      together.arrive_and_wait();
    }
  });
  EXPECT_THAT(counts, ::testing::Each(0));
}

void UseAdamW(TrainerConfig& trainer) {
  trainer.optimizer = {.adam_w = training::v1alpha1::AdamW{.learning_rate = 0.001}};
}

// Without shards a job is summed by the ring, or by what its environment names.
void AddCasesWithoutShards(std::vector<AllocationCase>* cases) {
  const auto add = [&](AllocationCase one) {
    one.shards = 0;
    cases->push_back(std::move(one));
  };
  add({.name = "TwoWorkersWithoutShards", .ranks = 2, .algorithm = Algorithm::kRing});
  const std::pair<const char*, Algorithm> kWays[] = {
      {"TheRing", Algorithm::kRing},        {"Direct", Algorithm::kDirect},
      {"Doubling", Algorithm::kDoubling},   {"HalvingDoubling", Algorithm::kHalvingDoubling},
      {"OneShot", Algorithm::kOneShot},     {"ATree", Algorithm::kTree},
      {"TwoTrees", Algorithm::kDoubleTree},
  };
  for (const auto& [name, algorithm] : kWays) {
    add({.name = fmt::format("ThreeWorkersWithoutShardsBy{}", name),
         .ranks = 3,
         .algorithm = algorithm});
    add({.name = fmt::format("FourWorkersWithoutShardsBy{}OverTcp", name),
         .ranks = 4,
         .wires = Wires::kTcp,
         .algorithm = algorithm});
  }
  add({.name = "FiveWorkersWithoutShardsByTwoLevels",
       .ranks = 5,
       .algorithm = Algorithm::kTwoLevel,
       .nodes = 2});
}

void UseNetwork(TrainerConfig& trainer, const std::string& name, std::optional<double> width) {
  trainer.model.zoo->name = name;
  trainer.model.zoo->width = width;
  trainer.model.zoo->dropout.reset();
  trainer.optimizer.sgd->learning_rate = 0.001;  // so that no loss is lost
}

void AddCasesOfTheFastestKernels(std::vector<AllocationCase>* cases) {
  const auto add = [&](AllocationCase one) {
    one.kernels = kernels::Selection::kFastest;
    cases->push_back(std::move(one));
  };
  add({.name = "TheFastestKernels"});
  add({.name = "TheFastestKernelsOfSeveralShards", .ranks = 2, .shards = 4});
  add({.name = "TheFastestKernelsOfAPerceptron", .change = [](TrainerConfig& trainer) {
         training::v1alpha1::Layer flatten, wide, relu, narrow;
         flatten.flatten.emplace();
         wide.linear.emplace().features = 32;
         relu.relu.emplace();
         narrow.linear.emplace().features = 4;
         trainer.model.zoo.reset();
         trainer.model.sequential.emplace().layers = {flatten, wide, relu, narrow};
       }});
  const auto add_network = [&](const char* test, const std::string& network, int image_side,
                               std::optional<double> width) {
    add({.name = fmt::format("TheFastestKernelsOf{}", test),
         .change = [=](TrainerConfig& trainer) { UseNetwork(trainer, network, width); },
         .image_side = image_side,
         .has_onednn = true});
  };
  add_network("LeNet", "lenet", 28, std::nullopt);
  add_network("AlexNet", "alexnet", 64, 0.125);
  add_network("Vgg16", "vgg-16", 32, 0.125);
  add_network("ResNet18", "resnet-18", 32, 0.25);
  add_network("ResNet50", "resnet-50", 32, 0.25);
  add_network("DenseNet121", "densenet-121", 32, 0.5);
  add({.name = "TheFastestKernelsOfGpt2",
       .change =
           [](TrainerConfig& trainer) {
             UseNetwork(trainer, "gpt-2", 0.1);
             trainer.model.zoo->layers = 2;
           },
       .is_text = true,
       .has_onednn = true});
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
  cases.push_back(
      {.name = "ImagesThatAreCutMirroredAndResized", .change = [](TrainerConfig& trainer) {
         trainer.data.images =
             training::v1alpha1::Images{.size = {10, 12},
                                        .resize = training::v1alpha1::Resize::kCubic,
                                        .crop = training::v1alpha1::Crop{},
                                        .mirror = true};
       }});
  cases.push_back({.name = "FourWorkersByHalving",
                   .ranks = 4,
                   .shards = 8,
                   .algorithm = Algorithm::kHalvingDoubling});
  for (const int ranks : {2, 3})
    cases.push_back({.name = fmt::format("{}WorkersInOneShot", ranks),
                     .ranks = ranks,
                     .shards = 8,
                     .algorithm = Algorithm::kOneShot});
  for (const int ranks : {3, 5, 6})
    cases.push_back({.name = fmt::format("{}WorkersWhoseShardsCrossTheTreeByHalving", ranks),
                     .ranks = ranks,
                     .shards = 11,
                     .algorithm = Algorithm::kHalvingDoubling});
  AddCasesWithoutShards(&cases);
  AddCasesOfTheFastestKernels(&cases);
  cases.push_back(
      {.name = "HalfTheBits", .ranks = 2, .shards = 4, .change = [](TrainerConfig& trainer) {
         trainer.gradients.bf16.emplace();
       }});
  cases.push_back({.name = "HalfTheBitsInBlocks",
                   .ranks = 3,
                   .shards = 7,
                   .change = [](TrainerConfig& trainer) { trainer.gradients.f16.emplace(); },
                   .algorithm = Algorithm::kHalvingDoubling});
  cases.push_back({.name = "TopK", .ranks = 3, .shards = 4, .change = [](TrainerConfig& trainer) {
                     trainer.gradients.top_k.emplace().share = 0.1;
                   }});
  cases.push_back({.name = "OneBit", .ranks = 3, .shards = 4, .change = [](TrainerConfig& trainer) {
                     trainer.gradients.one_bit.emplace();
                   }});
  cases.push_back({.name = "Adasum", .ranks = 3, .shards = 7, .change = [](TrainerConfig& trainer) {
                     trainer.gradients.adasum.emplace();
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

// Two ranks' steps, phase by phase: what is under way while a shard is computed, and what a step
// leaves to the next.
#include "runtime/train/step_runner.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/testing/group.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using collectives::OperationKind;

constexpr int kSteppingRanks = 2;

// A rank of the job with one shard, and all that it needs.
class SteppingRank {
 public:
  SteppingRank(const testing::DigitsJob& job, Communicator& communicator)
      : communicator_(communicator),
        workload_(Workload::Load(job.config.trainer, job.options.workspace).value()) {
    EXPECT_TRUE(workload_.CheckModel(job.options.kernels).ok());
    replica_.emplace(Replica::Create(workload_).value());
    shards_.emplace(workload_, job.options.kernels, replica_->weights());
    Renew();
  }

  // Another runner, which knows nothing of the steps before.
  void Renew() {
    steps_ = StepRunner::Create(
                 {.workload = workload_, .replica = *replica_, .shards = *shards_, .debug = debug_},
                 kSteppingRanks, communicator_)
                 .value();
  }

  // The sums of the replica's next step.
  std::vector<float> Sums(const std::function<StepFlags()>& wanted = nullptr) {
    EXPECT_TRUE(steps_->Compute(wanted).ok());
    const auto traffic = steps_->Reduce();
    EXPECT_TRUE(traffic.ok()) << traffic.status();
    return {steps_->gradients().begin(), steps_->gradients().end()};
  }
  void Commit(bool skip) { EXPECT_TRUE(steps_->Commit(skip).ok()); }

 private:
  Communicator& communicator_;
  const DebugSwitches debug_;
  Workload workload_;
  std::optional<Replica> replica_;
  std::optional<ShardRunner> shards_;
  std::unique_ptr<StepRunner> steps_;
};

class StepRunnerTest : public ::testing::Test {
 protected:
  StepRunnerTest() { job_.config.trainer.batch.shards = kSteppingRanks; }

  testing::DigitsJob job_;
  collectives::testing::Group group_{kSteppingRanks};
};

// The flags are asked for when all of the shard is computed and nothing more of it was taken: what
// is summed by then is what was handed over on the way. Nobody goes on before that has come.
TEST_F(StepRunnerTest, SumsTheFirstBucketsBeforeTheShardIsTaken) {
  job_.config.trainer.gradients.bucket_bytes = 16 * 1024;
  group_.Run([&](Communicator& communicator) {
    SteppingRank rank(job_, communicator);
    uint64_t sums = 0;
    rank.Sums([&] {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (sums == 0 && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
        sums = communicator.stats().of(OperationKind::kOrderedSum).calls;
      }
      return StepFlags{};
    });
    EXPECT_GT(sums, 0U);
  });
}

// Against a runner that has left nothing over from that step.
TEST_F(StepRunnerTest, WhatALossySumLeftOverCountsOnlyIfTheStepIsKept) {
  job_.config.trainer.gradients.one_bit.emplace();
  for (const bool skip : {true, false}) {
    group_.Run([&](Communicator& communicator) {
      SteppingRank rank(job_, communicator);
      rank.Sums();
      rank.Commit(skip);
      const std::vector<float> after = rank.Sums();
      rank.Renew();
      EXPECT_EQ(after == rank.Sums(), skip);
    });
  }
}

}  // namespace
}  // namespace ringmaster::train

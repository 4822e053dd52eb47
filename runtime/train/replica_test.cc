#include "runtime/train/replica.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/checkpoint/shard_file.h"
#include "runtime/data/sample_stream.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::Optimizer;

class ReplicaTest : public ::testing::Test {
 protected:
  void Use(const Optimizer& optimizer) {
    job_.config.trainer.optimizer = optimizer;
    workload_.emplace(Workload::Load(job_.config.trainer, job_.options.workspace).value());
    ASSERT_TRUE(workload_->CheckModel(job_.options.kernels).ok());
  }

  Replica New() const { return Replica::Create(*workload_).value(); }

  // Steps whose gradients are this number everywhere; those of 0 are left out.
  void Train(Replica& replica, const std::vector<float>& slopes) const {
    const nn::Model& layout = workload_->layout();
    const std::vector<float> statistics(layout.state_floats);
    std::vector<uint32_t> rows(static_cast<size_t>(workload_->batch()));
    for (const float slope : slopes) {
      std::vector<float> gradients(layout.parameter_floats);
      for (const nn::Parameter& parameter : layout.parameters) {
        std::fill_n(gradients.begin() + static_cast<std::ptrdiff_t>(parameter.offset),
                    parameter.shape.elements(), slope);
      }
      const StepSums sums{.gradients = gradients,
                          .statistics = statistics,
                          .statistics_samples = workload_->batch()};
      EXPECT_TRUE(replica.Commit(sums, rows, slope == 0).ok());
    }
  }

  absl::Status Restore(Replica& from, Replica& to) {
    const std::filesystem::path folder = job_.workspace();
    const checkpoint::CheckpointId id{
        .step = static_cast<int64_t>(from.step()), .round = 1, .world_size = 1};
    const auto written =
        checkpoint::WriteShard(folder, "default/digits", id, 0, from.Tensors(), from.Counters());
    if (!written.ok()) return written.status();
    const auto loaded = checkpoint::Load(
        folder, {.id = id, .digest = checkpoint::CombinedDigest({&written->digest, 1})});
    return loaded.ok() ? to.Restore(*loaded) : loaded.status();
  }

  testing::DigitsJob job_;
  std::optional<Workload> workload_;
};

TEST_F(ReplicaTest, AStepThatIsLeftOutIsNoneOfTheOptimizersUpdates) {
  Optimizer adam, adam_w, lamb;
  adam.adam.emplace().learning_rate = 0.01;
  adam_w.adam_w.emplace().learning_rate = 0.01;
  lamb.lamb.emplace().learning_rate = 0.01;
  for (const Optimizer& optimizer : {adam, adam_w, lamb}) {
    Use(optimizer);
    Replica straight = New(), skipping = New();
    Train(straight, {2, 4, -3});
    Train(skipping, {0, 2, 0, 0, 4, -3});
    EXPECT_EQ(skipping.step(), 6U);
    EXPECT_EQ(skipping.WeightsDigest(), straight.WeightsDigest());
    EXPECT_NE(skipping.WeightsDigest(), New().WeightsDigest());
  }
}

TEST_F(ReplicaTest, ACheckpointKeepsTheNumberOfUpdates) {
  Optimizer adam;
  adam.adam.emplace().learning_rate = 0.01;
  Use(adam);
  Replica straight = New(), before = New(), after = New();
  Train(straight, {2, 4, -3});
  Train(before, {2, 0, 0, 4});
  const absl::Status restored = Restore(before, after);
  ASSERT_TRUE(restored.ok()) << Message(restored);
  Train(after, {-3});
  EXPECT_EQ(after.step(), 5U);
  EXPECT_EQ(after.skipped_steps(), 2U);
  EXPECT_EQ(after.WeightsDigest(), straight.WeightsDigest());
}

TEST_F(ReplicaTest, SchedulesGoOnWhileStepsAreLeftOut) {
  Optimizer sgd;
  sgd.sgd.emplace().learning_rate = 0.5;
  job_.config.trainer.schedule.emplace().step_decay = {
      .milestones = {2}, .gamma = 0.5, .in_steps = true};
  Use(sgd);
  Replica early = New(), late = New();
  Train(early, {2, 0, 0});
  Train(late, {0, 0, 4});  // twice the slope at half the rate
  EXPECT_EQ(early.WeightsDigest(), late.WeightsDigest());
  EXPECT_NE(early.WeightsDigest(), New().WeightsDigest());
}

TEST_F(ReplicaTest, TheScheduleScalesTheWeightDecayOfEachStep) {
  using training::v1alpha1::Schedule;
  const Schedule plain, twice{.weight_decay = {{.epoch = 0, .factor = 2}}};
  // From the first of the job's steps on.
  const Schedule falls{.collapse = {{.steps = 13, .weight_decay_factor = 1}}};
  const Schedule falls_with_twice{.collapse = {{.steps = 13, .weight_decay_factor = 2}}};
  const auto trained = [this](const Schedule& schedule, double decay) {
    Optimizer sgd;
    sgd.sgd.emplace() = {.learning_rate = 0.5, .weight_decay = decay};
    job_.config.trainer.schedule = schedule;
    Use(sgd);
    Replica replica = New();
    Train(replica, {1, 2, 3});
    return replica.WeightsDigest();
  };
  EXPECT_EQ(trained(twice, 0.125), trained(plain, 0.25));
  EXPECT_NE(trained(twice, 0.125), trained(plain, 0.125));
  EXPECT_EQ(trained(falls_with_twice, 0.125), trained(falls, 0.25));
  EXPECT_NE(trained(falls_with_twice, 0.125), trained(falls, 0.125));
}

}  // namespace
}  // namespace ringmaster::train

#include "runtime/train/shard_runner.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/train/replica.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

class ShardRunnerTest : public ::testing::Test {
 protected:
  ShardRunnerTest()
      : workload_(Workload::Load(job_.config.trainer, job_.options.workspace).value()) {
    EXPECT_TRUE(workload_.CheckModel(job_.options.kernels).ok());
    replica_.emplace(Replica::Create(workload_).value());
    std::iota(rows_.begin(), rows_.end(), 0U);
    std::iota(positions_.begin(), positions_.end(), uint64_t{0});
  }

  // The floats of a contribution that belong to no gradient.
  std::vector<float> Between(const StepVector<float>& vector) const {
    std::vector<float> all(vector.gradients().begin(), vector.gradients().end());
    const auto& parameters = workload_.layout().parameters;
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(p->offset);
      all.erase(begin, begin + p->shape.elements());
    }
    return all;
  }

  const testing::DigitsJob job_;
  Workload workload_;
  std::optional<Replica> replica_;
  std::vector<uint32_t> rows_ = std::vector<uint32_t>(8);
  std::vector<uint64_t> positions_ = std::vector<uint64_t>(8);
};

TEST_F(ShardRunnerTest, LeavesNothingBetweenGradientsOfWhatLayThereBefore) {
  ShardRunner shards(workload_, job_.options.kernels, replica_->weights());
  const auto vector = shards.Run({0, 8}, rows_, positions_, nullptr);
  ASSERT_TRUE(vector.ok()) << vector.status();
  const std::vector<float> between = Between(*vector);
  EXPECT_FALSE(between.empty());
  EXPECT_EQ(std::ranges::count(between, 0.0F), std::ssize(between));
}

TEST_F(ShardRunnerTest, GradientsAreAsTheyWillBeWhenTheyAreReported) {
  ShardRunner shards(workload_, job_.options.kernels, replica_->weights());
  std::vector<float> reported(workload_.layout().parameter_floats, -1);
  size_t taken = reported.size();
  const auto take = [&](std::span<const float> contribution, size_t from) {
    std::copy(contribution.begin() + static_cast<std::ptrdiff_t>(from),
              contribution.begin() + static_cast<std::ptrdiff_t>(taken),
              reported.begin() + static_cast<std::ptrdiff_t>(from));
    taken = from;
  };
  const GradientsReady ready(take);
  const auto vector = shards.Run({0, 8}, rows_, positions_, &ready);
  ASSERT_TRUE(vector.ok()) << vector.status();
  EXPECT_EQ(taken, 0U);
  EXPECT_TRUE(std::ranges::equal(reported, vector->gradients()));
}

TEST_F(ShardRunnerTest, AShardLeavesNothingToTheNext) {
  ShardRunner used(workload_, job_.options.kernels, replica_->weights());
  ASSERT_TRUE(used.Run({4, 8}, rows_, positions_, nullptr).ok());
  const auto again = used.Run({0, 4}, rows_, positions_, nullptr);
  ShardRunner fresh(workload_, job_.options.kernels, replica_->weights());
  const auto once = fresh.Run({0, 4}, rows_, positions_, nullptr);
  ASSERT_TRUE(again.ok() && once.ok());
  EXPECT_TRUE(std::ranges::equal(again->all(), once->all()));
}

TEST_F(ShardRunnerTest, ShardsOfAllSizesShareTheMemoryOfTheLargest) {
  const graph::CompileOptions options = workload_.StepOptions(job_.options.kernels);
  ShardProgram program(workload_, options, replica_->weights());
  const auto run = [&](ShardProgram& with, int64_t samples) {
    const auto vector = with.Run({{0, samples}, rows_, positions_}, nullptr);
    EXPECT_TRUE(vector.ok()) << vector.status();
    return std::vector<float>(vector->all().begin(), vector->all().end());
  };
  size_t largest = 0;
  for (const int64_t samples : {4, 8, 3, 4}) {
    ShardProgram alone(workload_, options, replica_->weights());
    EXPECT_EQ(run(program, samples), run(alone, samples)) << samples;
    largest = std::max(largest, alone.value_bytes());
    EXPECT_EQ(program.value_bytes(), largest) << samples;
  }
  EXPECT_EQ(program.sizes(), 2U);
}

TEST_F(ShardRunnerTest, AsksForMemoryWhereAShareHasAnotherSizeThanTheLastOne) {
  ShardRunner shards(workload_, job_.options.kernels, replica_->weights());
  std::optional<int64_t> available;
  int asked = 0;
  const auto memory = [&] {
    ++asked;
    return available;
  };
  EXPECT_TRUE(shards.PrepareShare(8, memory).ok());
  EXPECT_TRUE(shards.PrepareShare(8, memory).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(shards.PrepareShare(4, memory).ok());
  EXPECT_EQ(asked, 2);
  available = 1000;
  EXPECT_EQ(shards.PrepareShare(6, memory).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(shards.PrepareShare(4, memory).code(), absl::StatusCode::kResourceExhausted)
      << "what there was room for is given back";
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(shards.Run({0, 8}, rows_, positions_, nullptr).ok());
}

}  // namespace
}  // namespace ringmaster::train

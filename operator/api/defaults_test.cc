#include "operator/api/defaults.h"

#include <gtest/gtest.h>

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's

TEST(DefaultShardsTest, TakesTheMostThatLeaveEnoughSamplesInAShard) {
  EXPECT_EQ(DefaultShards(128, 4, false), 16);
  EXPECT_EQ(DefaultShards(127, 4, false), 8);
  EXPECT_EQ(DefaultShards(64, 4, false), 8);
  EXPECT_EQ(DefaultShards(63, 4, false), 4);
  EXPECT_EQ(DefaultShards(1, 4, false), 4);
  EXPECT_EQ(DefaultShards(512, 4, true), 16);
  EXPECT_EQ(DefaultShards(64, 4, true), 4);
  EXPECT_EQ(DefaultShards(2147483647, 10000, false), 40000);
}

TEST(DerivedDefaultsTest, FollowReplicasAndLeaveWhatIsThere) {
  TrainingJobSpec spec;
  spec.workers.replicas = 3;
  ApplyDerivedDefaults(spec);
  EXPECT_EQ(spec.workers.min_replicas, 3);
  EXPECT_EQ(spec.workers.max_replicas, 3);
  EXPECT_EQ(spec.launch->mode, LaunchMode::kExec);
  spec.workers.replicas = 5;
  ApplyDerivedDefaults(spec);
  EXPECT_EQ(spec.workers.max_replicas, 3);
}

TEST(DerivedDefaultsTest, SeeBatchNormInTheZooAndInLayers) {
  Model model{.zoo = Zoo{.name = "lenet-bn"}};
  EXPECT_TRUE(HasBatchNorm(model));
  model.zoo->name = "densenet-121";
  EXPECT_TRUE(HasBatchNorm(model));
  model.zoo->name = "vgg-16";
  EXPECT_FALSE(HasBatchNorm(model));
  model = {.sequential = Sequential{.layers = {{.linear = Linear{.features = 2}}}}};
  EXPECT_FALSE(HasBatchNorm(model));
  model.sequential->layers.push_back({.batch_norm = BatchNorm{}});
  EXPECT_TRUE(HasBatchNorm(model));
}

TEST(DerivedDefaultsTest, ASynchronisedBatchNormNeedsNoMoreSamplesInAShardThanOthers) {
  TrainingJobSpec spec;
  spec.workers.replicas = 4;
  spec.trainer.emplace();
  spec.trainer->model.zoo = Zoo{.name = "lenet-bn"};
  spec.trainer->batch.size = 128;
  ApplyDerivedDefaults(spec);
  EXPECT_EQ(spec.trainer->batch.shards, 4);
  spec.trainer->batch.shards.reset();
  spec.trainer->model.batch_norm = BatchNormOver::kSynchronised;
  ApplyDerivedDefaults(spec);
  EXPECT_EQ(spec.trainer->batch.shards, 16);
}

}  // namespace
}  // namespace ringmaster::api

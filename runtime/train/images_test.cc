// Jobs whose images are changed before the network sees them: data.images.
#include <filesystem>

#include <gtest/gtest.h>

#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::DigitsJob;
using testing::TrainUndisturbed;
using testing::TrainWithALoss;
using training::v1alpha1::Collapse;
using training::v1alpha1::Crop;
using training::v1alpha1::Images;
using training::v1alpha1::Resize;

class ImagesTest : public ::testing::Test {
 protected:
  Finished Train(int workers = 1) {
    const Finished finished = TrainUndisturbed(job_.config, job_.options, workers);
    std::filesystem::remove_all(job_.checkpoints());
    return finished;
  }

  Images& images() { return job_.config.trainer.data.images.emplace(); }

  DigitsJob job_;
};

TEST_F(ImagesTest, WeightsAreTheSameForAnyNumberOfWorkersAndWhatTheySeeIsNot) {
  const Finished plain = Train();
  images() = {.size = {9, 10}, .resize = Resize::kCubic, .crop = Crop{}, .mirror = true};
  const Finished one = Train();
  const Finished three = Train(3);
  EXPECT_EQ(one.weights_sha256, three.weights_sha256);
  EXPECT_EQ(one.evaluation, three.evaluation);
  EXPECT_NE(one.weights_sha256, plain.weights_sha256);
}

TEST_F(ImagesTest, AJobThatLosesAWorkerSeesTheSameViewsAgain) {
  images() = {.crop = Crop{}, .mirror = true};
  const Finished expected = Train();
  EXPECT_EQ(TrainWithALoss(job_.config, job_.options, 3).weights_sha256, expected.weights_sha256);
}

// Divided by a power of two, in f32 or in the text's precision: the same numbers.
TEST_F(ImagesTest, ADeviationDividesAsTheScaleOfTheDataDoes) {
  const Finished by_scale = Train();
  job_.config.trainer.data.csv->scale = 1;
  images() = {.deviation = {16}};
  EXPECT_EQ(Train().weights_sha256, by_scale.weights_sha256);
}

TEST_F(ImagesTest, ACollapseOverAllOfTheRunSeesWhatOneWithoutACropSees) {
  job_.config.trainer.schedule.emplace().collapse = Collapse{.steps = 13};
  const Finished whole = Train();
  images() = {.crop = Crop{}};
  EXPECT_NE(Train().weights_sha256, whole.weights_sha256);
  job_.config.trainer.schedule->collapse->whole_images = true;
  EXPECT_EQ(Train().weights_sha256, whole.weights_sha256);
}

}  // namespace
}  // namespace ringmaster::train

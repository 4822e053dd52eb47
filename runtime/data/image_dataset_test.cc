#include "runtime/data/image_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using training::v1alpha1::Crop;
using training::v1alpha1::Images;

constexpr uint64_t kSeed = 7;

// Images of two channels, whose values are 0, 1, 2, ... in the first image, and ten times as much,
// a hundred times as much and so on in others. The label is the number.
std::unique_ptr<const Dataset> Numbers(const tensor::Shape& shape, uint32_t samples = 3) {
  const SampleFormat format{.input = {shape, tensor::DType::kF32}, .classes = samples};
  return MakeDataset(format, samples, [shape](uint32_t row, void* input, int32_t* labels) {
    for (int64_t i = 0; i < shape.elements(); ++i)
      static_cast<float*>(input)[i] = static_cast<float>(i) * std::pow(10.0F, row);
    *labels = static_cast<int32_t>(row);
  });
}

struct Filled {
  std::vector<float> inputs;
  std::vector<int32_t> labels;
};

class ImageDatasetTest : public ::testing::Test {
 protected:
  absl::Status Change(const Images& images, ImageRun run = {.seed = kSeed},
                      const tensor::Shape& shape = {2, 3, 4}) {
    images_ = images;
    splits_ = {.train = Numbers(shape), .held_out = Numbers(shape), .fingerprint = "it"};
    return ChangeImages(images_, run, splits_);
  }

  Filled HeldOut(const std::vector<uint32_t>& rows) const {
    Filled batch;
    Into(*splits_.held_out, batch, rows.size(),
         [&](auto& inputs, auto& labels) { return splits_.held_out->Fill(rows, inputs, labels); });
    return batch;
  }

  Filled Seen(const std::vector<uint32_t>& rows, const std::vector<uint64_t>& positions) const {
    Filled batch;
    Into(*splits_.train, batch, rows.size(), [&](auto& inputs, auto& labels) {
      return splits_.train->FillForTraining(rows, positions, inputs, labels);
    });
    return batch;
  }

  // Image 0 at so many positions.
  std::set<std::vector<float>> Views(uint64_t positions) const {
    std::set<std::vector<float>> views;
    for (uint64_t p = 0; p < positions; ++p) views.insert(Seen({0}, {p}).inputs);
    return views;
  }

  Images images_;
  Splits splits_;

 private:
  template <typename FillIn>
  static void Into(const Dataset& from, Filled& batch, size_t rows, FillIn fill) {
    tensor::Tensor inputs(from.format().InputsOf(rows).shape, tensor::DType::kF32);
    tensor::Tensor labels(from.format().LabelsOf(rows).shape, tensor::DType::kI32);
    ASSERT_TRUE(fill(inputs, labels).ok());
    batch.inputs.assign(inputs.span<float>().begin(), inputs.span<float>().end());
    batch.labels.assign(labels.span<int32_t>().begin(), labels.span<int32_t>().end());
  }
};

std::vector<float> CountedUp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST_F(ImageDatasetTest, WhatNobodyAsksForStaysAsItIs) {
  ASSERT_TRUE(Change({}).ok());
  EXPECT_EQ(HeldOut({0}).inputs, CountedUp(24));
  const Filled seen = Seen({2, 0}, {5, 6});
  EXPECT_THAT(seen.labels, ElementsAre(2, 0));
  EXPECT_EQ(seen.inputs[1], 100);
  EXPECT_EQ(seen.inputs[24 + 23], 23);
  EXPECT_EQ(splits_.fingerprint, "it");
}

TEST_F(ImageDatasetTest, EveryChannelHasItsOwnMeanAndDeviation) {
  ASSERT_TRUE(Change({.mean = {1, 12}, .deviation = {0.5}}).ok());
  const Filled batch = HeldOut({0});
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(batch.inputs[i], (static_cast<float>(i) - 1) * 2);
    EXPECT_EQ(batch.inputs[12 + i], static_cast<float>(i) * 2);
  }
}

TEST_F(ImageDatasetTest, TheNetworkSeesImagesOfTheSizeThatIsAskedFor) {
  ASSERT_TRUE(Change({.size = {6, 8}}).ok());
  EXPECT_EQ(splits_.train->format().input.shape, (tensor::Shape{2, 6, 8}));
  EXPECT_EQ(splits_.held_out->format().input.shape, (tensor::Shape{2, 6, 8}));
  EXPECT_EQ(splits_.train->size(), 3u);
  const Filled batch = HeldOut({0});
  ASSERT_EQ(batch.inputs.size(), 96u);
  EXPECT_EQ(batch.inputs.front(), 0);
  EXPECT_EQ(batch.inputs.back(), 23);
}

TEST_F(ImageDatasetTest, HalfOfTheTrainingImagesAreMirroredAndNoneThatAreHeldOut) {
  ASSERT_TRUE(Change({.mirror = true}).ok());
  EXPECT_EQ(HeldOut({0}).inputs, CountedUp(24));
  std::vector<float> mirrored;
  for (const float row : {0.0F, 4.0F, 8.0F, 12.0F, 16.0F, 20.0F})
    for (const float column : {3.0F, 2.0F, 1.0F, 0.0F}) mirrored.push_back(row + column);
  int count = 0;
  constexpr int kViews = 2000;
  for (uint64_t p = 0; p < kViews; ++p) {
    const std::vector<float> view = Seen({0}, {p}).inputs;
    if (view == mirrored)
      ++count;
    else
      ASSERT_EQ(view, CountedUp(24));
  }
  EXPECT_NEAR(count, kViews / 2, 5 * std::sqrt(kViews) / 2);
}

TEST_F(ImageDatasetTest, AViewFollowsFromSeedAndPositionAlone) {
  const Images images{.crop = Crop{}, .mirror = true};
  ASSERT_TRUE(Change(images).ok());
  const Filled together = Seen({0, 1, 0}, {11, 12, 13});
  const Filled alone = Seen({1}, {12});
  EXPECT_TRUE(std::equal(alone.inputs.begin(), alone.inputs.end(), together.inputs.begin() + 24));
  EXPECT_GT(Views(50).size(), 20u);
  const auto views = Views(20);
  ASSERT_TRUE(Change(images, {.seed = kSeed + 1}).ok());
  EXPECT_NE(Views(20), views);
}

TEST_F(ImageDatasetTest, WhetherAnImageIsMirroredDoesNotHangOnItsBox) {
  const tensor::Shape row{1, 1, 2};
  std::vector<float> firsts;
  for (const bool crops : {false, true}) {
    Images images{.mirror = true};
    if (crops) images.crop = Crop{.min_area = 1, .min_aspect = 2, .max_aspect = 2};
    ASSERT_TRUE(Change(images, {.seed = kSeed}, row).ok());
    std::vector<float> now;
    for (uint64_t p = 0; p < 64; ++p) now.push_back(Seen({0}, {p}).inputs.front());
    if (crops) {
      EXPECT_EQ(now, firsts);
    }
    firsts = now;
  }
}

TEST_F(ImageDatasetTest, FromTheCollapseOnImagesAreSeenWhole) {
  ASSERT_TRUE(Change({.crop = Crop{}}, {.seed = kSeed, .whole_from = 30}).ok());
  EXPECT_GT(Views(30).size(), 10u);
  for (uint64_t p = 30; p < 60; ++p) EXPECT_EQ(Seen({0}, {p}).inputs, CountedUp(24));
}

TEST_F(ImageDatasetTest, WhatDoesNotFitTheImagesIsRefused) {
  EXPECT_THAT(std::string(Change({.mean = {1, 2, 3}}).message()),
              HasSubstr("spec.trainer.data.images.mean: has 3 numbers, and the images 2 channels"));
  EXPECT_THAT(std::string(Change({.deviation = {1, 2, 3}}).message()),
              HasSubstr("spec.trainer.data.images.deviation: "));
  EXPECT_THAT(std::string(Change({}, {}, {12}).message()),
              HasSubstr("spec.trainer.data.images: samples are f32[12], no images"));
  ASSERT_TRUE(Change({}).ok());
  tensor::Tensor inputs(tensor::Shape{1, 2, 3, 4}, tensor::DType::kF32);
  tensor::Tensor labels(tensor::Shape{1}, tensor::DType::kI32);
  const std::array<uint32_t, 1> rows{0};
  EXPECT_FALSE(splits_.train->FillForTraining(rows, {}, inputs, labels).ok());
}

// Of a crop's boxes.
class BoxTest : public ::testing::Test {
 protected:
  std::vector<Box> Draw(const Crop& crop, ImageSize image, uint64_t count = 4000) const {
    std::vector<Box> boxes;
    for (uint64_t p = 0; p < count; ++p) {
      tensor::RandomStream stream(
          {.seed = kSeed, .domain = tensor::RandomDomain::kAugmentation, .position = p});
      boxes.push_back(DrawBox(crop, image, stream));
    }
    return boxes;
  }
};

double AreaOf(const Box& box) {
  return static_cast<double>(box.size.pixels());
}

double AspectOf(const Box& box) {
  return static_cast<double>(box.size.width) / static_cast<double>(box.size.height);
}

TEST_F(BoxTest, AreaAndAspectAreDrawnFromTheirRanges) {
  const ImageSize image{1000, 1000};
  double area = 0, aspect = 0;
  const Crop crop{.min_area = 0.1, .max_area = 0.5};
  const std::vector<Box> boxes = Draw(crop, image);
  for (const Box& box : boxes) {
    EXPECT_GT(AreaOf(box), 0.099e6);
    EXPECT_LT(AreaOf(box), 0.501e6);
    EXPECT_GT(AspectOf(box), 0.745);
    EXPECT_LT(AspectOf(box), 1.34);
    EXPECT_GE(box.top, 0);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.top + box.size.height, image.height);
    EXPECT_LE(box.left + box.size.width, image.width);
    area += AreaOf(box);
    aspect += AspectOf(box);
  }
  // Drawn evenly: five deviations of a mean of so many.
  const auto count = static_cast<double>(boxes.size());
  EXPECT_NEAR(area / count, 0.3e6, 5 * 0.4e6 / std::sqrt(12 * count));
  EXPECT_NEAR(aspect / count, (0.75 + 4.0 / 3) / 2, 5 * (4.0 / 3 - 0.75) / std::sqrt(12 * count));
}

TEST_F(BoxTest, APlaceIsAsLikelyAsAnyOther) {
  std::array<int, 3> lefts{};
  // Boxes of 2 by 2 in an image of 2 by 4.
  for (const Box& box :
       Draw({.min_area = 0.5, .max_area = 0.5, .min_aspect = 1, .max_aspect = 1}, {2, 4}, 3000)) {
    ASSERT_EQ(box.size, (ImageSize{2, 2}));
    ++lefts[static_cast<size_t>(box.left)];
  }
  for (const int count : lefts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(3000 * 2.0 / 9));
}

TEST_F(BoxTest, WhereNoneFitsItIsTheLargestInTheMiddle) {
  const Crop crop{.min_area = 1, .max_area = 1};
  EXPECT_THAT(Draw(crop, {100, 400}, 20), Each(Box{.top = 0, .left = 133, .size = {100, 133}}));
  EXPECT_THAT(Draw(crop, {400, 100}, 20), Each(Box{.top = 133, .left = 0, .size = {133, 100}}));
  EXPECT_THAT(Draw({.min_area = 0.001, .max_area = 0.001}, {1, 1}, 20),
              Each(Box{.top = 0, .left = 0, .size = {1, 1}}));
}

}  // namespace
}  // namespace ringmaster::data

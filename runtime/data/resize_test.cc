#include "runtime/data/resize.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Resized(const std::vector<float>& image, ImageSize from, const Box& box,
                           ImageSize to, Interpolation how) {
  std::vector<float> out(static_cast<size_t>(to.pixels()));
  Resizer(from, to, 1, how).Resize(image.data(), box, out.data());
  return out;
}

std::vector<float> Ramp(ImageSize size) {
  std::vector<float> image(static_cast<size_t>(size.pixels()));
  std::iota(image.begin(), image.end(), 0.0F);
  return image;
}

// 12 pixels of 0, 1, 4, 9, 16, ...: three rows of four.
std::vector<float> Squares() {
  std::vector<float> image = Ramp({3, 4});
  for (float& value : image) value *= value;
  return image;
}

// The values are torch.nn.functional.interpolate's, align_corners=False.
TEST(ResizeTest, LinearIsPyTorchsBilinear) {
  EXPECT_THAT(Resized(Squares(), {3, 4}, {.size = {3, 4}}, {2, 3}, Interpolation::kLinear),
              Pointwise(FloatNear(1e-4F), std::vector<float>{4.5000F, 9.5000F, 17.8333F, 54.5000F,
                                                             75.5000F, 99.8333F}));
}

TEST(ResizeTest, CubicIsPyTorchsBicubic) {
  EXPECT_THAT(Resized(Squares(), {3, 4}, {.size = {3, 4}}, {2, 3}, Interpolation::kCubic),
              Pointwise(FloatNear(1e-4F), std::vector<float>{2.2221F, 6.3594F, 14.6726F, 55.6043F,
                                                             77.5156F, 103.6029F}));
  EXPECT_THAT(
      Resized(Squares(), {3, 4}, {.size = {3, 4}}, {4, 6}, Interpolation::kCubic),
      Pointwise(FloatNear(1e-4F),
                std::vector<float>{-1.1854F, -1.1630F, -0.4144F, 0.9782F,   4.1434F,   6.5131F,
                                   4.5062F,  6.9015F,  11.5324F, 15.6877F,  22.7352F,  27.4777F,
                                   33.9469F, 40.0516F, 50.7518F, 59.2261F,  72.3429F,  80.7949F,
                                   65.9198F, 74.3973F, 88.9798F, 100.2168F, 117.2159F, 128.0407F}));
}

TEST(ResizeTest, ABoxIsResizedAsAnImageOfItsOwn) {
  const ImageSize whole{7, 9};
  const Box box{.top = 2, .left = 3, .size = {4, 5}};
  const std::vector<float> image = Ramp(whole);
  std::vector<float> alone;
  for (int64_t y = box.top; y < box.top + box.size.height; ++y) {
    for (int64_t x = box.left; x < box.left + box.size.width; ++x)
      alone.push_back(image[static_cast<size_t>(y * whole.width + x)]);
  }
  for (const Interpolation how : {Interpolation::kLinear, Interpolation::kCubic}) {
    for (const ImageSize to : {ImageSize{8, 3}, ImageSize{4, 5}, ImageSize{1, 1}}) {
      EXPECT_THAT(Resized(image, whole, box, to, how),
                  ElementsAreArray(Resized(alone, box.size, {.size = box.size}, to, how)));
    }
  }
}

TEST(ResizeTest, AnImageOfTheSizeThatIsWantedStaysAsItIs) {
  const std::vector<float> image = Ramp({5, 6});
  EXPECT_EQ(Resized(image, {5, 6}, {.size = {5, 6}}, {5, 6}, Interpolation::kCubic), image);
}

// Away from the edges; with a = -0.75 a cubic bends it.
TEST(ResizeTest, ASlopeStaysASlopeWhereItIsLinear) {
  const ImageSize from{1, 40}, to{1, 100};
  const std::vector<float> out =
      Resized(Ramp(from), from, {.size = from}, to, Interpolation::kLinear);
  for (size_t x = 5; x < 95; ++x)
    EXPECT_NEAR(out[x], (static_cast<float>(x) + 0.5F) * 0.4F - 0.5F, 1e-4F) << x;
}

TEST(ResizeTest, WhatIsEvenStaysEven) {
  for (const Interpolation how : {Interpolation::kLinear, Interpolation::kCubic}) {
    for (const ImageSize to : {ImageSize{3, 4}, ImageSize{9, 17}}) {
      EXPECT_THAT(Resized(std::vector<float>(63, 0.5F), {7, 9}, {.size = {7, 9}}, to, how),
                  Each(FloatNear(0.5F, 1e-6F)));
    }
  }
}

}  // namespace
}  // namespace ringmaster::data

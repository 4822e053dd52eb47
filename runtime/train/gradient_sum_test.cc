#include "runtime/train/gradient_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::train {
namespace {

using ::testing::HasSubstr;

TEST(GradientSumTest, RefusesMoreGradientsThanTopKHasPlacesForNamingTheField) {
  nn::Model layout;
  layout.parameter_floats = size_t{1} << 31;
  training::v1alpha1::Gradients config;
  config.top_k.emplace().share = 0.01;
  float out = 0;
  collectives::testing::Group group(1);
  group.Run([&](collectives::Communicator& comm) {
    const auto sum =
        GradientSum::Create({.layout = &layout, .config = &config}, comm, std::span(&out, 1));
    EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(sum.status()), HasSubstr("spec.trainer.gradients.topK: 2147483648 values"));
  });
}

}  // namespace
}  // namespace ringmaster::train

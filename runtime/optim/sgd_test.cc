#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

TEST(SgdTest, FollowsTheGradient) {
  ExpectTrajectory(SgdConfig(0.1, 0, false, 0), {{{0.95, -1.9, 0.475},
                                                  {0.925, -1.85, 0.675},
                                                  {1.025, -1.8625, 0.6},
                                                  {0.975, -1.9125, 0.65}}});
}

TEST(SgdTest, DecaysWeights) {
  ExpectTrajectory(SgdConfig(0.1, 0, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                     {0.923051, -1.846102, 0.6740255},
                                                     {1.02212795, -1.8567559, 0.598351474},
                                                     {0.971105821, -1.90489914, 0.647753123}}});
}

TEST(SgdTest, KeepsMomentum) {
  ExpectTrajectory(SgdConfig(0.1, 0.9, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                       {0.877151, -1.754302, 0.6510755},
                                                       {0.911609749, -1.6357195, 0.734342374},
                                                       {0.891711013, -1.57735953, 0.858548219}}});
}

TEST(SgdTest, LooksAheadWithNesterov) {
  ExpectTrajectory(SgdConfig(0.1, 0.9, true, 0.01), {{{0.9031, -1.8062, 0.45155},
                                                      {0.81257411, -1.62514822, 0.810037055},
                                                      {0.942869708, -1.52948942, 0.809042729},
                                                      {0.874075611, -1.5257031, 0.969839688}}});
}

TEST(SgdTest, RefusesNesterovWithoutMomentum) {
  EXPECT_EQ(MakeOptimizer(SgdConfig(0.1, 0, true, 0), 3).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SgdTest, OfCaffesFormIsTheSameWhileTheRateIs) {
  ExpectTrajectory(CaffeConfig(0.1, 0.9, false, 0.01), {{{0.949, -1.898, 0.4745},
                                                         {0.877151, -1.754302, 0.6510755},
                                                         {0.911609749, -1.6357195, 0.734342375},
                                                         {0.891711013, -1.57735953, 0.858548219}}});
  ExpectTrajectory(CaffeConfig(0.1, 0.9, true, 0.01), {{{0.9031, -1.8062, 0.45155},
                                                        {0.81257411, -1.62514822, 0.810037055},
                                                        {0.942869708, -1.52948942, 0.809042729},
                                                        {0.874075611, -1.5257031, 0.969839688}}});
}

TEST(SgdTest, OfCaffesFormRemembersTheRatesOfItsSteps) {
  ExpectTrajectory(CaffeConfig(0.1, 0.9, false, 0.01),
                   {{{0.949, -1.898, 0.4745},
                     {0.8901255, -1.780251, 0.55131275},
                     {0.861915919, -1.67695684, 0.601556397},
                     {0.830169556, -1.59003247, 0.652950484}}},
                   {}, /*decay=*/0.5);
}

}  // namespace
}  // namespace ringmaster::optim

#include <gtest/gtest.h>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

TEST(AdamTest, FollowsThePublishedAlgorithm) {
  ExpectTrajectory(AdamConfig(0.01, 0.9, 0.999, 1e-8, 0),
                   {{{0.99, -1.99, 0.49},
                     {0.980678204, -1.9806782, 0.496553267},
                     {0.982741774, -1.97422755, 0.499071823},
                     {0.981964921, -1.97176302, 0.502398358}}});
}

TEST(AdamTest, AddsWeightDecayToTheGradient) {
  ExpectTrajectory(AdamConfig(0.05, 0.8, 0.95, 1e-3, 0.1),
                   {{{0.950083195, -1.95004163, 0.450166113},
                     {0.90304876, -1.90290467, 0.48379564},
                     {0.910718924, -1.86673533, 0.493306865},
                     {0.900485908, -1.84720812, 0.507545223}}});
}

TEST(AdamTest, RefusesABetaOfOne) {
  EXPECT_FALSE(MakeOptimizer(AdamConfig(0.1, 1, 0.999, 1e-8, 0), 3).ok());
  EXPECT_FALSE(MakeOptimizer(AdamConfig(0.1, 0.9, 1, 1e-8, 0), 3).ok());
  EXPECT_FALSE(MakeOptimizer(AdamWConfig(0.1, 1, 0.9, 1e-8, 0), 3).ok());
}

TEST(AdamWTest, DecaysWeightsBesideTheMoments) {
  ExpectTrajectory(AdamWConfig(0.05, 0.8, 0.95, 1e-3, 0.1),
                   {{{0.9450998, -1.94004995, 0.447699203},
                     {0.894458549, -1.88437549, 0.480091053},
                     {0.904619348, -1.84554166, 0.489041644},
                     {0.896980716, -1.82980544, 0.502854622}}});
}

}  // namespace
}  // namespace ringmaster::optim

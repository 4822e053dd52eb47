#include "runtime/optim/segments.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/testing.h"

namespace ringmaster::optim {
namespace {

TEST(GroupTest, HasARateAndADecayOfItsOwn) {
  Config config = SgdConfig(0.1, 0.9, false, 0.01);
  config.groups = {Biases(2)};
  ExpectTrajectory(config,
                   {{{0.949, -1.898, 0.45},
                     {0.877151, -1.754302, 0.805},
                     {0.911609749, -1.6357195, 0.9745},
                     {0.891711013, -1.57735953, 1.22705}}},
                   WeightsAndBias());
}

// The names of those parameters that a group with a rate of zero holds.
std::string FrozenBy(const training::v1alpha1::ParameterGroup& group) {
  const std::vector<ParameterRange> parameters = {{"conv1.weight", 0, 1},
                                                  {"conv1.bias", 16, 1},
                                                  {"bn1.gamma", 32, 1},
                                                  {"bn1.beta", 48, 1},
                                                  {"layer1.0.fc.weight", 64, 1}};
  Config config = SgdConfig(1, 0, false, 0);
  config.groups = {group};
  config.groups[0].learning_rate_factor = 0;
  auto optimizer = MakeOptimizer(config, 80, parameters);
  if (!optimizer.ok()) return Message(optimizer.status());
  std::vector<float> weights(80), gradient(80, 1.0f);
  (*optimizer)->Update(weights, gradient, {0, 1, 1});
  std::string frozen;
  for (const ParameterRange& p : parameters) {
    if (weights[p.offset] == 0) frozen += p.name + " ";
  }
  return frozen;
}

TEST(GroupTest, IsFoundByNamesWithStarsAndByRoles) {
  using training::v1alpha1::ParameterRole;
  EXPECT_EQ(FrozenBy({.names = {"conv1.*"}}), "conv1.weight conv1.bias ");
  EXPECT_EQ(FrozenBy({.names = {"*1*.weight"}}), "conv1.weight layer1.0.fc.weight ");
  EXPECT_EQ(FrozenBy({.names = {"bn1.beta", "l*c.w**t"}}), "bn1.beta layer1.0.fc.weight ");
  EXPECT_EQ(FrozenBy({.roles = {ParameterRole::kBias}}), "conv1.bias ");
  EXPECT_EQ(FrozenBy({.roles = {ParameterRole::kNorm}}), "bn1.gamma bn1.beta ");
  EXPECT_EQ(FrozenBy({.names = {"*.fc.*"}, .roles = {ParameterRole::kNorm, ParameterRole::kBias}}),
            "conv1.bias bn1.gamma bn1.beta layer1.0.fc.weight ");
}

TEST(GroupTest, OfNoParameterIsRefusedWithTheNamesThatThereAre) {
  EXPECT_EQ(FrozenBy({.names = {"conv1"}}),
            "optimizer.groups[0]: no parameter of the network belongs to it; there are "
            "conv1.weight, conv1.bias, bn1.gamma, bn1.beta, layer1.0.fc.weight");
}

TEST(GroupTest, TheFirstThatAParameterBelongsToCounts) {
  Config config = SgdConfig(1, 0, false, 0);
  config.groups = {{.names = {"fc.bias"}, .learning_rate_factor = 0.5},
                   {.names = {"fc.*"}, .learning_rate_factor = 0.25}};
  auto optimizer = *MakeOptimizer(config, 3, WeightsAndBias());
  Weights weights = {0, 0, 0};
  optimizer->Update(weights, Weights{1, 1, 1}, {0, 1, 1});
  EXPECT_EQ(weights, (Weights{-0.25f, -0.25f, -0.5f}));
}

}  // namespace
}  // namespace ringmaster::optim

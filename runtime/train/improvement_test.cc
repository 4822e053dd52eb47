#include "runtime/train/improvement.h"

#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::EarlyStop;
using training::v1alpha1::Metric;
using Config = training::v1alpha1::Evaluation;

Evaluation LossAt(int64_t step, double loss) {
  return {.step = step, .loss = loss, .accuracy = 1 - loss};
}

// The number of evaluations after which it stops, of losses one step apart; 0 where it never does.
int StopsAfter(const Config& config, const std::vector<double>& losses) {
  Improvement improvement(config);
  for (size_t i = 0; i < losses.size(); ++i) {
    improvement.Add(LossAt(static_cast<int64_t>(i) + 1, losses[i]));
    if (improvement.ShouldStop()) return static_cast<int>(i) + 1;
  }
  return 0;
}

Config Patience(int evaluations, double min_delta = 0) {
  return {.early_stop = EarlyStop{.patience = evaluations, .min_delta = min_delta}};
}

TEST(ImprovementTest, StopsWhenPatienceIsAtItsEnd) {
  EXPECT_EQ(StopsAfter(Patience(2), {5, 4, 3, 3, 3.5}), 5);
  EXPECT_EQ(StopsAfter(Patience(2), {5, 6, 4, 5, 3}), 0) << "never two in a row";
  EXPECT_EQ(StopsAfter(Patience(1), {5, 4, 4}), 3) << "no worse is no better";
  EXPECT_EQ(StopsAfter(Config{}, {1, 2, 3, 4, 5}), 0) << "nobody asked";
}

TEST(ImprovementTest, SmallStepsAddUpUntilTheyPassTheLeastOne) {
  EXPECT_EQ(StopsAfter(Patience(2, 0.25), {2, 1.875, 1.75, 1.625}), 3);
  EXPECT_EQ(StopsAfter(Patience(3, 0.25), {2, 1.875, 1.75, 1.625, 1.5}), 0)
      << "1.625 passes 2 by more than 0.25";
}

TEST(ImprovementTest, TheMetricSaysWhichWayIsBetter) {
  Config config = Patience(2);
  config.metric = Metric::kAccuracy;
  EXPECT_EQ(StopsAfter(config, {0.5, 0.4, 0.3}), 0) << "the accuracy rises";
  EXPECT_EQ(StopsAfter(config, {0.5, 0.6, 0.7}), 3);
}

TEST(ImprovementTest, WhatIsNoNumberIsNoBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(StopsAfter(Patience(2), {nan, nan}), 2);
  EXPECT_EQ(StopsAfter(Patience(2), {nan, 5, nan, nan}), 4);
  EXPECT_EQ(StopsAfter(Patience(2), {infinity, infinity, infinity}), 2);
  Config config = Patience(2);
  config.metric = Metric::kAuroc;  // which these evaluations have not measured
  EXPECT_EQ(StopsAfter(config, {3, 2}), 2);
}

TEST(ImprovementTest, TheBestIsStrictlyBetterThanAllBefore) {
  Improvement improvement(Patience(9, 10));
  std::vector<int64_t> best;
  int64_t step = 0;
  for (const double loss : {5.0, 4.0, 4.5, 4.0, 3.9, 3.9}) {
    improvement.Add(LossAt(++step, loss));
    if (improvement.IsBest(step)) best.push_back(step);
  }
  EXPECT_THAT(best, ::testing::ElementsAre(1, 2, 5)) << "whatever minDelta says";
}

TEST(ImprovementTest, SaysWhyItStops) {
  Improvement improvement(Patience(2, 0.001));
  for (const auto& [step, loss] : {std::pair(10, 0.25), std::pair(20, 0.3), std::pair(30, 0.4)})
    improvement.Add(LossAt(step, loss));
  EXPECT_EQ(improvement.WhyItStops(),
            "the loss has not fallen by more than 0.001 in 2 evaluations, since step 10 (0.25)");
  Config config = Patience(1);
  config.metric = Metric::kAccuracy;
  Improvement other(config);
  other.Add(LossAt(10, 0.25));
  other.Add(LossAt(20, 0.25));
  EXPECT_EQ(other.WhyItStops(), "the accuracy has not risen in 1 evaluation, since step 10 (0.75)");
}

TEST(ImprovementTest, GoesOnFromACheckpointAsIfNothingHadBeen) {
  const std::vector<double> losses = {5, 0.1, 4.1, 4.2, 4.3, 4.4, 4.5};
  for (size_t cut = 0; cut < 4; ++cut) {
    Improvement before(Patience(4));
    for (size_t i = 0; i < cut; ++i) before.Add(LossAt(static_cast<int64_t>(i), losses[i]));
    checkpoint::Metadata metadata;
    before.Save(metadata);
    Improvement after(Patience(4));
    after.Add(LossAt(99, 0.001));  // forgotten
    ASSERT_TRUE(after.Restore(metadata).ok());
    size_t steps = cut;
    for (; !after.ShouldStop(); ++steps)
      after.Add(LossAt(static_cast<int64_t>(steps), losses[steps]));
    EXPECT_EQ(steps, 6u) << "four after the second; cut at " << cut;
    EXPECT_EQ(after.WhyItStops(), "the loss has not fallen in 4 evaluations, since step 1 (0.1)");
  }
}

TEST(ImprovementTest, BeginsAnewWithACheckpointThatKnowsNothingOfIt) {
  Improvement improvement(Patience(1));
  improvement.Add(LossAt(1, 1));
  improvement.Add(LossAt(2, 2));
  ASSERT_TRUE(improvement.ShouldStop());
  ASSERT_TRUE(improvement.Restore({}).ok());
  EXPECT_FALSE(improvement.ShouldStop());
  EXPECT_FALSE(improvement.IsBest(1));
}

TEST(ImprovementTest, RefusesWhatIsNotItsOwn) {
  Improvement improvement(Patience(1));
  improvement.Add(LossAt(1, 1));
  checkpoint::Metadata metadata;
  improvement.Save(metadata);
  metadata["ringmaster.best.value"] = "good";
  const absl::Status status = improvement.Restore(metadata);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), "its ringmaster.best.value is 'good'");
  EXPECT_TRUE(improvement.IsBest(1)) << "nothing has changed";
}

}  // namespace
}  // namespace ringmaster::train

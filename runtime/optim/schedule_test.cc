#include "runtime/optim/schedule.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::optim {
namespace {

using namespace training::v1alpha1;  // NOLINT: every other name here is one of the API's

Schedule WithStepDecay(std::vector<double> milestones, double gamma) {
  Schedule schedule;
  schedule.step_decay = StepDecay{std::move(milestones), gamma};
  return schedule;
}

Schedule WithCosine(double final_fraction, int64_t warmup) {
  Schedule schedule;
  schedule.cosine = Cosine{final_fraction};
  schedule.warmup_steps = warmup;
  return schedule;
}

void ExpectFactors(const Schedule& schedule, const RunLength& run,
                   const std::vector<double>& expected) {
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1, step, run), expected[step]) << "step " << step;
  }
}

TEST(ScheduleTest, IsConstantByDefault) {
  ExpectFactors(Schedule(), {.total_steps = 4, .samples = 10, .batch = 2}, {1, 1, 1, 1, 1});
}

TEST(ScheduleTest, WarmsUpLinearlyAndThenStaysAtOne) {
  Schedule schedule;
  schedule.warmup_steps = 4;
  ExpectFactors(schedule, {.total_steps = 7, .samples = 10, .batch = 2},
                {0.2, 0.4, 0.6, 0.8, 1, 1, 1});
}

TEST(ScheduleTest, DecaysAtTheFirstStepThatBeginsAtOrAfterAMilestone) {
  // 10 samples in steps of 4: epoch 1 ends inside step 2, epoch 2 with step 4.
  ExpectFactors(WithStepDecay({1, 2}, 0.5), {.total_steps = 8, .samples = 10, .batch = 4},
                {1, 1, 1, 0.5, 0.5, 0.25, 0.25});
}

TEST(ScheduleTest, DecaysInsideAnEpochAndInAnyOrderOfMilestones) {
  ExpectFactors(WithStepDecay({1.5, 0.5}, 0.1), {.total_steps = 8, .samples = 8, .batch = 2},
                {1, 1, 0.1, 0.1, 0.1, 0.1, 0.1 * 0.1});
}

TEST(ScheduleTest, MultipliesWarmUpAndDecay) {
  Schedule schedule = WithStepDecay({0.5}, 0.1);
  schedule.warmup_steps = 3;
  ExpectFactors(schedule, {.total_steps = 5, .samples = 4, .batch = 1},
                {0.25, 0.5, 0.1 * 0.75, 0.1, 0.1});
}

TEST(ScheduleTest, FallsAlongAHalfCosineToTheFinalFractionAtTheLastStep) {
  const double half = std::sqrt(0.5);
  ExpectFactors(WithCosine(0, 0), {.total_steps = 5, .samples = 8, .batch = 2},
                {1, (1 + half) / 2, 0.5, (1 - half) / 2, 0});
  ExpectFactors(WithCosine(0.2, 0), {.total_steps = 3, .samples = 8, .batch = 2}, {1, 0.6, 0.2});
}

TEST(ScheduleTest, TheCosineBeginsWhereTheWarmUpEnds) {
  ExpectFactors(WithCosine(0, 2), {.total_steps = 5, .samples = 8, .batch = 2},
                {1.0 / 3, 2.0 / 3, 1, 0.5, 0});
}

TEST(ScheduleTest, StaysFiniteForAWarmUpLongerThanTheRunAndARunOfOneStep) {
  EXPECT_DOUBLE_EQ(LearningRateAt(WithCosine(0, 10), 1, 2, {.total_steps = 3}), 3.0 / 11);
  EXPECT_DOUBLE_EQ(LearningRateAt(WithCosine(0, 0), 1, 0, {.total_steps = 1}), 1);
  EXPECT_DOUBLE_EQ(LearningRateAt(WithCosine(0.5, 0), 1, 9, {.total_steps = 3}), 0.5);
}

// Ten steps an epoch: 32 workers with 128 samples each.
constexpr RunLength kThirtyTwoWorkers = {.total_steps = 900, .samples = 40960, .batch = 4096};

// 90 epochs of 1,281,167 images in batches of 14,336, as the solver of 448 nodes counts them.
constexpr RunLength kCaffe448 = {.total_steps = 8040, .samples = 1'281'167, .batch = 14'336};

Schedule Caffe448() {
  Schedule schedule;
  schedule.warmup = Warmup{.linear = LinearWarmup{.steps = 446, .start_rate = 0.1}};
  schedule.polynomial = Polynomial{};
  return schedule;
}

TEST(LinearScalingTest, MultipliesTheRateByTheBatchOverTheReference) {
  Schedule schedule;
  schedule.linear_scaling_batch = 256;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, 0, kThirtyTwoWorkers), 1.6);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, 0, {.total_steps = 9, .batch = 128}), 0.05);
}

TEST(WarmupTest, SteppingIsConstantInsideAnEpochAndRisesToTheTarget) {
  Schedule schedule;
  schedule.linear_scaling_batch = 256;
  schedule.warmup = Warmup{.stepping = SteppingWarmup{.epochs = 5}};
  for (uint64_t step = 0; step < 50; ++step) {
    const auto epoch = static_cast<double>(step / 10);
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, step, kThirtyTwoWorkers), 1.6 * (epoch + 1) / 6)
        << "step " << step;
  }
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, 50, kThirtyTwoWorkers), 1.6);
}

TEST(WarmupTest, GradualRisesFromOneWorkersRateInEqualStepsOfAnEpoch) {
  for (const int epochs : {5, 10}) {
    Schedule schedule;
    schedule.linear_scaling_batch = 256;
    schedule.warmup = Warmup{.gradual = GradualWarmup{.epochs = epochs, .start_batch = 128}};
    const double base = 0.1 * 128 / 256, rise = (1.6 - base) / epochs;
    for (uint64_t step = 0; step < static_cast<uint64_t>(epochs) * 10; ++step) {
      EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, step, kThirtyTwoWorkers),
                       base + rise * static_cast<double>(step / 10))
          << "step " << step;
    }
    const auto end = static_cast<uint64_t>(epochs) * 10;
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, end, kThirtyTwoWorkers), 1.6);
    schedule.warmup->gradual = GradualWarmup{.epochs = epochs, .start_rate = 0.4};
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, 9, kThirtyTwoWorkers), 0.4);
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0.1, 10, kThirtyTwoWorkers), 0.4 + 1.2 / epochs);
  }
}

TEST(WarmupTest, TakesThePlaceOfWhatFollowsWhichBeginsAfterIt) {
  Schedule schedule = WithStepDecay({2, 4}, 0.1);
  schedule.warmup = Warmup{.stepping = SteppingWarmup{.epochs = 3}};
  ExpectFactors(schedule, {.total_steps = 6, .samples = 4, .batch = 4},
                {0.25, 0.5, 0.75, 0.1, 0.1 * 0.1, 0.1 * 0.1});
  // An epoch that ends inside a step: the warm-up lasts until a step begins after it.
  schedule = WithCosine(0, 0);
  schedule.warmup = Warmup{.stepping = SteppingWarmup{.epochs = 1}};
  ExpectFactors(schedule, {.total_steps = 5, .samples = 10, .batch = 4}, {0.5, 0.5, 0.5, 1, 0});
}

TEST(StepDecayTest, OfThirtySixtyAndEightyEpochsIsTheUsualRecipe) {
  const Schedule schedule = WithStepDecay({30, 60, 80}, 0.1);
  for (uint64_t step = 0; step < kThirtyTwoWorkers.total_steps; ++step) {
    const double expected = step < 300 ? 1.6 : step < 600 ? 0.16 : step < 800 ? 0.016 : 0.0016;
    EXPECT_NEAR(LearningRateAt(schedule, 1.6, step, kThirtyTwoWorkers), expected, 1e-15);
  }
}

TEST(StepDecayTest, CountsStepsWhereItIsToldTo) {
  Schedule schedule;
  schedule.step_decay = StepDecay{.milestones = {2, 3}, .gamma = 0.5, .in_steps = true};
  ExpectFactors(schedule, {.total_steps = 5, .samples = 100, .batch = 1}, {1, 1, 0.5, 0.25, 0.25});
}

TEST(PeriodicDecayTest, MultipliesEverySoManyStepsOrEpochs) {
  Schedule schedule;
  schedule.periodic_decay = PeriodicDecay{.steps = 2, .gamma = 0.5};
  ExpectFactors(schedule, {.total_steps = 6, .samples = 100, .batch = 1},
                {1, 1, 0.5, 0.5, 0.25, 0.25});
  schedule.periodic_decay = PeriodicDecay{.epochs = 1.5, .gamma = 0.5};
  ExpectFactors(schedule, {.total_steps = 6, .samples = 4, .batch = 2},
                {1, 1, 1, 0.5, 0.5, 0.5, 0.25});
}

TEST(PolynomialTest, CountsFromTheStartSoThatTheRateDropsWhereTheWarmUpEnds) {
  const Schedule schedule = Caffe448();
  for (uint64_t i = 0; i < 8040; ++i) {
    const auto x = static_cast<double>(i);
    const double expected = i < 446 ? 0.1 + 4.7 * x / 446 : 4.8 * (1 - x / 8040);
    ASSERT_NEAR(LearningRateAt(schedule, 4.8, i, kCaffe448), expected, 1e-12) << "step " << i;
  }
  EXPECT_NEAR(LearningRateAt(schedule, 4.8, 445, kCaffe448), 4.789, 5e-4);
  EXPECT_NEAR(LearningRateAt(schedule, 4.8, 446, kCaffe448), 4.534, 5e-4);
}

TEST(PolynomialTest, CountsFromTheWarmUpsEndToItsOwnWhereItIsToldTo) {
  Schedule schedule;
  schedule.polynomial =
      Polynomial{.power = 2, .final_fraction = 0.2, .steps = 6, .after_warmup = true};
  schedule.warmup = Warmup{.linear = LinearWarmup{.steps = 2}};
  const auto fall = [](double left) { return 0.2 + 0.8 * left * left; };
  ExpectFactors(schedule, {.total_steps = 8},
                {0, 0.5, 1, fall(0.75), fall(0.5), fall(0.25), 0.2, 0.2});
  schedule.polynomial = Polynomial{.power = 0.5};
  schedule.warmup.reset();
  ExpectFactors(schedule, {.total_steps = 4}, {1, std::sqrt(0.75), std::sqrt(0.5), 0.5, 0, 0});
}

TEST(CyclicTest, RisesAndFallsAsAPowerInEachCycle) {
  Schedule schedule;
  schedule.cyclic = Cyclic{.epochs = 3, .rise_epochs = 1, .power = 2, .low_fraction = 0.2};
  const auto fall = [](double left) { return 0.2 + 0.8 * left * left; };
  const std::vector<double> cycle = {0.2, 0.6, 1, fall(0.75), fall(0.5), fall(0.25)};
  for (uint64_t step = 0; step < 24; ++step) {
    EXPECT_DOUBLE_EQ(
        LearningRateAt(schedule, 1, step, {.total_steps = 24, .samples = 8, .batch = 4}),
        cycle[step % cycle.size()])
        << "step " << step;
  }
}

// Each cycle's end is also the beginning of a collapse: a job of two cycles and a collapse is,
// until then, the same as a job of three cycles. It computes that part anew, for no job begins with
// another's checkpoint.
TEST(CollapseTest, BranchesOffACycleAtTheRateThatTheCycleEndsWith) {
  Schedule schedule;
  schedule.cyclic = Cyclic{.epochs = 2, .rise_epochs = 1, .low_fraction = 0.1};
  const RunLength run = {.total_steps = 6, .samples = 4, .batch = 4};
  Schedule branch = schedule;
  branch.collapse = Collapse{.epochs = 2};
  for (uint64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(LearningRateAt(branch, 3, step, run), LearningRateAt(schedule, 3, step, run));
    EXPECT_EQ(WeightDecayFactor(branch, step, run), 1);
  }
  EXPECT_DOUBLE_EQ(LearningRateAt(branch, 3, 4, run), 0.3);
  EXPECT_DOUBLE_EQ(LearningRateAt(branch, 3, 5, run), 0.3 / 4);
  EXPECT_EQ(WeightDecayFactor(branch, 4, run), 2);
  EXPECT_EQ(CollapseBegin(branch, run), 4u);
  EXPECT_EQ(CollapseBegin(schedule, run), 6u);
}

TEST(CollapseTest, FallsAsASquareWithTwiceTheDecayOverTheLastSteps) {
  Schedule schedule = Caffe448();
  schedule.collapse = Collapse{.steps = 402};
  const double rate = 4.8 * (1 - 7638.0 / 8040);
  for (uint64_t i = 7000; i < 8040; ++i) {
    const auto x = static_cast<double>(i);
    const double left = 1 - (x - 7638) / 402;
    ASSERT_NEAR(LearningRateAt(schedule, 4.8, i, kCaffe448),
                i < 7638 ? 4.8 * (1 - x / 8040) : rate * left * left, 1e-12)
        << "step " << i;
    ASSERT_EQ(WeightDecayFactor(schedule, i, kCaffe448), i < 7638 ? 1 : 2);
  }
}

TEST(WeightDecayFactorTest, LiesOnStraightLinesBetweenThePoints) {
  Schedule schedule;
  schedule.weight_decay = {{.epoch = 1, .factor = 0.5}, {.epoch = 3, .factor = 1.5}};
  const std::vector<double> expected = {0.5, 0.5, 0.5, 0.75, 1, 1.25, 1.5, 1.5};
  const RunLength run = {.total_steps = 8, .samples = 4, .batch = 2};
  for (uint64_t step = 0; step < expected.size(); ++step)
    EXPECT_DOUBLE_EQ(WeightDecayFactor(schedule, step, run), expected[step]) << "step " << step;
  EXPECT_EQ(WeightDecayFactor(Schedule(), 3, run), 1);
}

TEST(ScheduleTest, APolynomialThatEndsWithinTheWarmUpHasFallenAfterIt) {
  Schedule schedule = Caffe448();
  schedule.polynomial = Polynomial{.final_fraction = 0.25, .steps = 446, .after_warmup = true};
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 4.8, 446, kCaffe448), 1.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 4.8, 8000, kCaffe448), 1.2);
}

TEST(ScheduleTest, APeriodOfATenthOfAnEpochEndsWithTheTenth) {
  Schedule schedule;
  schedule.periodic_decay = PeriodicDecay{.epochs = 0.1, .gamma = 0.5};
  const RunLength tenth = {.total_steps = 100, .samples = 1000, .batch = 100};
  for (uint64_t step = 0; step < 30; ++step) {
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1, step, tenth), std::pow(0.5, step)) << step;
  }
}

TEST(ScheduleTest, StaysFiniteWhereARunIsShorterThanItsParts) {
  Schedule schedule = Caffe448();
  schedule.collapse = Collapse{.epochs = 100};
  schedule.weight_decay = {{.epoch = 0, .factor = 1}};
  for (uint64_t step = 0; step < 5; ++step) {
    const double rate = LearningRateAt(schedule, 1, step, {.total_steps = 3});
    EXPECT_TRUE(rate >= 0 && rate <= 1) << rate;
    EXPECT_EQ(WeightDecayFactor(schedule, step, {.total_steps = 3}), 2);
  }
}

}  // namespace
}  // namespace ringmaster::optim

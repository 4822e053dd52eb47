#include "runtime/optim/schedule.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::optim {
namespace {

using training::v1alpha1::Cosine;
using training::v1alpha1::Schedule;
using training::v1alpha1::StepDecay;

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
    EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, step, run), expected[step]) << "step " << step;
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
  EXPECT_DOUBLE_EQ(LearningRateFactor(WithCosine(0, 10), 2, {.total_steps = 3}), 3.0 / 11);
  EXPECT_DOUBLE_EQ(LearningRateFactor(WithCosine(0, 0), 0, {.total_steps = 1}), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(WithCosine(0.5, 0), 9, {.total_steps = 3}), 0.5);
}

}  // namespace
}  // namespace ringmaster::optim

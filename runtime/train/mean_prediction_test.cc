#include "runtime/train/mean_prediction.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using training::v1alpha1::LossFunction;
using training::v1alpha1::TrainerConfig;

// Scores are f32.
constexpr double kTolerance = 1e-6;

// A job of so many held-out samples, of which nothing but their format matters here.
Workload Over(const TrainerConfig& config, const data::SampleFormat& format, uint32_t samples) {
  const auto part = [&](uint32_t size) {
    return data::MakeDataset(format, size, [](uint32_t, void*, int32_t*) {});
  };
  return Workload::Over(config, {.train = part(1), .held_out = part(samples)});
}

TrainerConfig OneStep() {
  TrainerConfig config;
  config.batch.size = 1;
  config.steps = 1;
  return config;
}

data::SampleFormat Classes(int64_t classes) {
  return {.input = {tensor::Shape{1}, tensor::DType::kF32}, .classes = classes};
}

// Scores whose softmax is this.
std::vector<float> ScoresOf(const std::vector<double>& probabilities) {
  std::vector<float> scores;
  for (const double p : probabilities) scores.push_back(static_cast<float>(std::log(p) + 3));
  return scores;
}

TEST(MeanPredictionTest, ProbabilitiesAreAveragedAndNotScores) {
  const TrainerConfig config = OneStep();
  const Workload workload = Over(config, Classes(2), 2);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{1, 0};
  // The first model is sure and wrong about the first sample; the samples come in two passes.
  mean.Add({0, 1}, ScoresOf({0.999, 0.001}), std::span(labels).first(1));
  mean.Add({1, 2}, ScoresOf({0.6, 0.4}), std::span(labels).last(1));
  mean.Add({0, 2}, ScoresOf({0.1, 0.9, 0.7, 0.3}), labels);
  const Evaluation found = mean.Measure(2);
  EXPECT_NEAR(found.loss, -(std::log((0.001 + 0.9) / 2) + std::log((0.6 + 0.7) / 2)) / 2,
              kTolerance);
  EXPECT_EQ(found.accuracy, 0.5);
  EXPECT_THAT(found.auroc, Optional(1.0)) << "0.4505 holds, 0.35 does not";
  EXPECT_EQ(found.top5_accuracy, std::nullopt);
}

TEST(MeanPredictionTest, OfOneModelItIsWhatThatPredicts) {
  const TrainerConfig config = OneStep();
  const Workload workload = Over(config, Classes(8), 1);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{2};
  mean.Add({0, 1}, ScoresOf({0.3, 0.2, 0.05, 0.1, 0.09, 0.11, 0.1, 0.05}), labels);
  const Evaluation found = mean.Measure(1);
  EXPECT_NEAR(found.loss, -std::log(0.05), kTolerance);
  EXPECT_EQ(found.perplexity, std::nullopt) << "it is no text";
  EXPECT_THAT(found.top5_accuracy, Optional(0.0));
  EXPECT_EQ(found.auroc, std::nullopt);
}

TEST(MeanPredictionTest, IndependentLabelsHaveAProbabilityEach) {
  const TrainerConfig config = OneStep();
  data::SampleFormat format = Classes(2);
  format.label_shape = tensor::Shape{2};
  format.label_names = {"a", "b"};
  const Workload workload = Over(config, format, 2);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{1, 0, 0, 1};
  const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
  mean.Add({0, 2}, std::vector<float>{logit(0.9), logit(0.2), logit(0.1), logit(0.1)}, labels);
  mean.Add({0, 2}, std::vector<float>{logit(0.2), logit(0.4), logit(0.3), logit(0.3)}, labels);
  const Evaluation found = mean.Measure(2);
  EXPECT_NEAR(found.loss, -(std::log(0.55) + std::log(0.7) + std::log(0.8) + std::log(0.2)) / 4,
              kTolerance);
  EXPECT_EQ(found.accuracy, 0.75);
  EXPECT_THAT(found.label_aurocs, ElementsAre(Optional(1.0), Optional(0.0)));
  EXPECT_THAT(found.auroc, Optional(0.5));
}

TEST(MeanPredictionTest, WithMeanSquareScoresAreAveraged) {
  TrainerConfig config = OneStep();
  config.loss = LossFunction::kMeanSquare;
  const Workload workload = Over(config, Classes(2), 1);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{1};
  mean.Add({0, 1}, std::vector<float>{0.5F, 1.0F}, labels);
  mean.Add({0, 1}, std::vector<float>{0.0F, 0.5F}, labels);
  EXPECT_NEAR(mean.Measure(2).loss, (0.25 * 0.25 + 0.25 * 0.25) / 2, kTolerance);
}

// Where a probability in f32 would be 1, and one less it 0.
TEST(MeanPredictionTest, WhatAModelIsSureOfAndWrongAboutCostsItsScore) {
  const TrainerConfig config = OneStep();
  data::SampleFormat format = Classes(1);
  format.label_shape = tensor::Shape{1};
  format.label_names = {"a"};
  const Workload workload = Over(config, format, 1);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{0};
  mean.Add({0, 1}, std::vector<float>{20}, labels);
  EXPECT_NEAR(mean.Measure(1).loss, 20, 1e-6);
}

// A sum of zeros would have no logarithm.
TEST(MeanPredictionTest, WhatNoModelThinksPossibleCostsMuchAndNotEverything) {
  const TrainerConfig config = OneStep();
  const Workload workload = Over(config, Classes(2), 1);
  MeanPrediction mean(workload);
  const std::vector<int32_t> labels{1};
  mean.Add({0, 1}, std::vector<float>{1000, 0}, labels);
  EXPECT_NEAR(mean.Measure(1).loss, 126 * std::log(2), 1e-3);
}

}  // namespace
}  // namespace ringmaster::train

// Data, networks, graphs and optimizers put together by hand, in one process and without a trainer:
// what the parts promise each other.
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_stream.h"
#include "runtime/graph/executor.h"
#include "runtime/nn/binding.h"
#include "runtime/nn/initialise.h"
#include "runtime/nn/model.h"
#include "runtime/nn/running_statistics.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster {
namespace {

namespace config = training::v1alpha1;
using tensor::DType;
using tensor::Tensor;

constexpr uint64_t kSeed = 7;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(Message(value.status()));
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(Message(status));
}

data::Splits Digits() {
  config::Data data;
  data.csv.emplace();
  data.csv->path = "examples/digits/digits.csv";
  data.csv->classes = 10;
  data.csv->shape = {1, 8, 8};
  data.csv->scale = 16;
  return Must(data::Load(data, "."));
}

data::Splits Shakespeare() {
  config::Data data;
  data.text.emplace();
  data.text->path = "examples/char-lm/tinyshakespeare.txt";
  data.text->window = 16;
  return Must(data::Load(data, "."));
}

config::Model LenetBn() {
  config::Model model;
  model.zoo.emplace();
  model.zoo->name = "lenet-bn";
  return model;
}

config::Model SmallTransformer() {
  config::Model model;
  model.transformer.emplace();
  model.transformer->layers = 1;
  model.transformer->heads = 2;
  model.transformer->width = 16;
  model.transformer->dropout = 0.2;
  return model;
}

// A graph for so many samples, with its own input memory.
class Shard {
 public:
  Shard(const config::Model& config, const data::Dataset& samples, int64_t batch, nn::Mode mode)
      : samples_(samples),
        model_(Must(nn::BuildModel(config, {.mode = mode,
                                            .batch = batch,
                                            .sample = samples.format().input,
                                            .label_shape = samples.format().label_shape,
                                            .classes = samples.format().classes}))),
        executor_(Must(graph::Executor::Compile(model_.graph, {}))),
        inputs_(model_.inputs.shape, model_.inputs.dtype),
        labels_(model_.labels.shape, DType::kI32) {
    Must(executor_->Bind(nn::kInputs, inputs_));
    Must(executor_->Bind(nn::kLabels, labels_));
  }

  const nn::Model& model() const { return model_; }
  graph::Executor& executor() { return *executor_; }
  double labels() const { return static_cast<double>(labels_.elements()); }

  // Runs `rows`, the first of which stands at `position` of the sample stream.
  void Run(const std::vector<uint32_t>& rows, uint64_t position) {
    Must(samples_.Fill(rows, inputs_, labels_));
    std::vector<uint64_t> positions(rows.size());
    std::iota(positions.begin(), positions.end(), position);
    Must(executor_->Run({.seed = kSeed, .sample_positions = positions}));
  }
  double Scalar(const char* output) { return Must(executor_->Output(output)).data<float>()[0]; }

 private:
  const data::Dataset& samples_;
  nn::Model model_;
  std::unique_ptr<graph::Executor> executor_;
  Tensor inputs_, labels_;
};

// Steps of plain training on one worker with one shard.
class Training {
 public:
  Training(const config::Model& config, const data::Dataset& samples, int64_t batch,
           double learning_rate)
      : batch_(batch),
        rate_(learning_rate),
        shard_(config, samples, batch, nn::Mode::kTraining),
        stream_(kSeed, samples.size()),
        weights_(shard_.model().parameter_floats),
        gradients_(weights_.size()),
        states_(shard_.model().state_floats),
        statistics_(states_.size()) {
    nn::InitialiseParameters(shard_.model(), kSeed, weights_);
    nn::InitialiseStates(shard_.model(), states_);
    Must(nn::BindParameters(shard_.model(), weights_, shard_.executor()));
    Must(nn::BindGradients(shard_.model(), gradients_, shard_.executor()));
    Must(nn::BindStatistics(shard_.model(), statistics_, shard_.executor()));
    config::Optimizer adam;
    adam.adam.emplace();
    optimizer_ = Must(optim::MakeOptimizer(adam, weights_.size()));
  }

  // The loss per label.
  double Step() {
    const uint64_t position = data::FirstPosition(step_, batch_);
    std::vector<uint32_t> rows(static_cast<size_t>(batch_));
    stream_.Read(position, rows);
    shard_.Run(rows, position);
    optimizer_->Update(weights_, gradients_, {step_++, rate_, 1 / shard_.labels()});
    nn::WeighStatistics(batch_, statistics_);
    nn::FoldStatistics(shard_.model(), statistics_, batch_, states_);
    return shard_.Scalar(nn::kLossSum) / shard_.labels();
  }

  std::vector<float>& weights() { return weights_; }
  std::vector<float>& states() { return states_; }

 private:
  int64_t batch_;
  double rate_;
  Shard shard_;
  data::SampleStream stream_;
  std::vector<float> weights_, gradients_, states_, statistics_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  uint64_t step_ = 0;
};

TEST(LearningTest, LenetLearnsDigitsInOneEpoch) {
  const data::Splits digits = Digits();
  EXPECT_EQ(digits.train->size(), 1438u);
  ASSERT_EQ(digits.held_out->size(), 359u);
  Training training(LenetBn(), *digits.train, 32, 0.002);
  const double first = training.Step();
  EXPECT_NEAR(first, std::log(10.0), 1.0);
  double last = first;
  for (int step = 1; step < 45; ++step) last = training.Step();
  EXPECT_LT(last, first / 4);

  Shard evaluation(LenetBn(), *digits.held_out, 359, nn::Mode::kEvaluation);
  Must(nn::BindParameters(evaluation.model(), training.weights(), evaluation.executor()));
  Must(nn::BindStates(evaluation.model(), training.states(), evaluation.executor()));
  std::vector<uint32_t> rows(359);
  std::iota(rows.begin(), rows.end(), 0u);
  evaluation.Run(rows, 0);
  EXPECT_GT(evaluation.Scalar(nn::kCorrect) / 359, 0.85);
}

TEST(LearningTest, ATransformerLearnsCharacters) {
  const data::Splits text = Shakespeare();
  Training training(SmallTransformer(), *text.train, 16, 0.01);
  const double first = training.Step();
  EXPECT_NEAR(first, std::log(65.0), 0.1) << "small weights predict all characters alike";
  double last = first;
  for (int step = 1; step < 60; ++step) last = training.Step();
  EXPECT_LT(last, 3.2) << "below the entropy of single characters";
}

TEST(LearningTest, TheSameSeedGivesTheSameBits) {
  const data::Splits digits = Digits();
  Training one(LenetBn(), *digits.train, 16, 0.002), two(LenetBn(), *digits.train, 16, 0.002);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(one.Step(), two.Step());
  EXPECT_EQ(one.weights(), two.weights());
  EXPECT_EQ(one.states(), two.states());
}

// The gradients of `rows`, computed in shards of the given sizes and added.
std::vector<float> GradientSum(const config::Model& config, const data::Dataset& samples,
                               const std::vector<int64_t>& sizes) {
  std::vector<float> weights, sum;
  uint64_t position = 100;
  for (const int64_t size : sizes) {
    Shard shard(config, samples, size, nn::Mode::kTraining);
    weights.resize(shard.model().parameter_floats);
    sum.resize(weights.size());
    std::vector<float> gradients(weights.size());
    nn::InitialiseParameters(shard.model(), kSeed, weights);
    Must(nn::BindParameters(shard.model(), weights, shard.executor()));
    Must(nn::BindGradients(shard.model(), gradients, shard.executor()));
    std::vector<uint32_t> rows(static_cast<size_t>(size));
    std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(position));
    shard.Run(rows, position);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[i];
    position += static_cast<uint64_t>(size);
  }
  return sum;
}

// With dropout: its masks belong to the samples, so cutting the batch otherwise does not change
// them.
TEST(LearningTest, GradientsOfShardsOfAnySizeAddUpToThoseOfTheBatch) {
  const data::Splits text = Shakespeare();
  const std::vector<float> whole = GradientSum(SmallTransformer(), *text.train, {12});
  const std::vector<float> parts = GradientSum(SmallTransformer(), *text.train, {5, 4, 3});
  ASSERT_EQ(whole.size(), parts.size());
  double largest = 0;
  for (const float gradient : whole) largest = std::max<double>(largest, std::abs(gradient));
  ASSERT_GT(largest, 1);
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], parts[i], 1e-5 * largest) << i;
}

}  // namespace
}  // namespace ringmaster

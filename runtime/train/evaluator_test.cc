#include "runtime/train/evaluator.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/nn/binding.h"
#include "runtime/tensor/random.h"
#include "runtime/train/replica.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::DigitsJob;

constexpr int64_t kEvaluatedStep = 3;

// One rank's own copy of a job, at its initial weights.
struct Rank {
  explicit Rank(const DigitsJob& job)
      : workload(Workload::Load(job.config.trainer, job.options.workspace).value()),
        replica(MakeReplica(workload)) {}

  static Replica MakeReplica(Workload& workload) {
    EXPECT_TRUE(workload.CheckModel(kernels::Selection::kFastest).ok());
    return Replica::Create(workload).value();
  }

  Workload workload;
  Replica replica;
};

absl::StatusOr<std::optional<Evaluation>> RunOn(Evaluator& evaluator,
                                                collectives::Communicator& communicator) {
  RM_RETURN_IF_ERROR(evaluator.Compute(communicator));
  return evaluator.Reduce(kEvaluatedStep, communicator);
}

// Scores and labels of each held-out sample, computed one after another.
struct Row {
  std::vector<double> logits;
  std::vector<int32_t> labels;
};

class EvaluatorTest : public ::testing::Test {
 protected:
  // Images of noise in so many classes, every fifth held out.
  void UseNoise(int rows, int classes) {
    std::ofstream out(job_.data());
    out << "label";
    for (int i = 0; i < 64; ++i) out << ",p" << i;
    out << "\n";
    tensor::RandomStream noise({.seed = 5, .domain = tensor::RandomDomain::kAugmentation});
    for (int row = 0; row < rows; ++row) {
      out << noise.Below(static_cast<uint32_t>(classes));
      for (int i = 0; i < 64; ++i) out << "," << noise.Below(17);
      out << "\n";
    }
    job_.config.trainer.data.csv->classes = classes;
  }

  // What all ranks find alike.
  std::optional<Evaluation> Evaluate(int world) {
    std::vector<std::optional<Evaluation>> found(static_cast<size_t>(world));
    collectives::testing::Group group(world);
    group.Run([&](collectives::Communicator& communicator) {
      Rank rank(job_);
      Evaluator evaluator(rank.workload, kernels::Selection::kFastest, rank.replica.weights(),
                          rank.replica.states());
      const auto result = RunOn(evaluator, communicator);
      ASSERT_TRUE(result.ok()) << Message(result.status());
      const auto again = RunOn(evaluator, communicator);
      ASSERT_TRUE(again.ok()) << Message(again.status());
      EXPECT_EQ(*result, *again);
      found[static_cast<size_t>(communicator.rank())] = *result;
    });
    for (const auto& evaluation : found) EXPECT_EQ(evaluation, found.front());
    return found.front();
  }

  std::vector<Row> Rows() {
    Rank rank(job_);
    const nn::Model model = rank.workload.Build(nn::Mode::kEvaluation, 1).value();
    const auto executor =
        graph::Executor::Compile(model.graph, {.kernels = kernels::Selection::kFastest}).value();
    tensor::Tensor inputs(model.inputs.shape, model.inputs.dtype);
    tensor::Tensor labels(model.labels.shape, model.labels.dtype);
    EXPECT_TRUE(executor->Bind(nn::kInputs, inputs).ok());
    EXPECT_TRUE(executor->Bind(nn::kLabels, labels).ok());
    EXPECT_TRUE(nn::BindParameters(model, rank.replica.weights(), *executor).ok());
    EXPECT_TRUE(nn::BindStates(model, rank.replica.states(), *executor).ok());
    std::vector<Row> rows;
    for (uint32_t i = 0; i < rank.workload.held_out().size(); ++i) {
      EXPECT_TRUE(rank.workload.held_out().Fill({&i, 1}, inputs, labels).ok());
      EXPECT_TRUE(executor->Run({}).ok());
      const tensor::Tensor logits = executor->Output(nn::kLogits).value();
      const auto scores = std::as_const(logits).span<float>();
      const auto values = labels.span<int32_t>();
      rows.push_back({{scores.begin(), scores.end()}, {values.begin(), values.end()}});
    }
    return rows;
  }

  DigitsJob job_;
};

double LossOf(const Row& row) {
  double sum = 0;
  for (const double logit : row.logits) sum += std::exp(logit);
  return std::log(sum) - row.logits[static_cast<size_t>(row.labels[0])];
}

// Classes with a higher score than the label's.
int64_t PlaceOf(const Row& row) {
  const double own = row.logits[static_cast<size_t>(row.labels[0])];
  return std::count_if(row.logits.begin(), row.logits.end(),
                       [&](double logit) { return logit > own; });
}

TEST_F(EvaluatorTest, MeasuresEachSampleOnceWhateverTheNumberOfWorkers) {
  UseNoise(1003, 8);  // 200 held out: three blocks of 64 and one of 8
  const std::vector<Row> rows = Rows();
  ASSERT_EQ(rows.size(), 200U);
  double loss = 0, right = 0, in_five = 0;
  for (const Row& row : rows) {
    loss += LossOf(row);
    right += PlaceOf(row) == 0 ? 1 : 0;
    in_five += PlaceOf(row) < 5 ? 1 : 0;
  }
  const Evaluation alone = Evaluate(1).value();
  EXPECT_EQ(alone.step, kEvaluatedStep);
  EXPECT_NEAR(alone.loss, loss / 200, 1e-5);
  EXPECT_EQ(alone.accuracy, right / 200);
  EXPECT_EQ(alone.top5_accuracy, in_five / 200);
  EXPECT_GT(*alone.top5_accuracy, alone.accuracy);
  EXPECT_FALSE(alone.auroc);
  EXPECT_FALSE(alone.perplexity);
  for (const int world : {2, 3, 6}) EXPECT_EQ(Evaluate(world), alone) << world << " workers";
}

TEST_F(EvaluatorTest, ABlockThatIsTooLargeIsComputedInPasses) {
  UseNoise(503, 8);  // 100 held out: a block of 64 and one of 36
  training::v1alpha1::Layer wide, pool, flatten, last;
  wide.conv2d = {.channels = 16384, .kernel = 1};  // 4 MiB a sample
  pool.adaptive_average_pool.emplace().size = 1;
  flatten.flatten.emplace();
  last.linear.emplace().features = 8;
  job_.config.trainer.model.zoo.reset();
  job_.config.trainer.model.sequential.emplace().layers = {wide, pool, flatten, last};
  ASSERT_EQ(Rank(job_).workload.evaluated_at_once(), 16);
  const std::vector<Row> rows = Rows();
  ASSERT_EQ(rows.size(), 100U);
  double loss = 0, right = 0;
  for (const Row& row : rows) {
    loss += LossOf(row);
    right += PlaceOf(row) == 0 ? 1 : 0;
  }
  const Evaluation alone = Evaluate(1).value();
  EXPECT_NEAR(alone.loss, loss / 100, 1e-5);
  EXPECT_EQ(alone.accuracy, right / 100);
  EXPECT_EQ(Evaluate(2), alone);
}

TEST_F(EvaluatorTest, TheAreaUnderTheCurveIsThatOfAllSamplesTogether) {
  UseNoise(1003, 2);
  double won = 0, pairs = 0;
  const std::vector<Row> rows = Rows();
  for (const Row& positive : rows) {
    for (const Row& negative : rows) {
      if (positive.labels[0] != 1 || negative.labels[0] != 0) continue;
      const double mine = positive.logits[1] - positive.logits[0];
      const double other = negative.logits[1] - negative.logits[0];
      pairs += 1;
      won += mine > other ? 1 : mine == other ? 0.5 : 0;
    }
  }
  const Evaluation alone = Evaluate(1).value();
  EXPECT_NEAR(alone.auroc.value(), won / pairs, 1e-9);
  EXPECT_FALSE(alone.top5_accuracy) << "of two classes every label is among the five";
  for (const int world : {2, 3, 6}) EXPECT_EQ(Evaluate(world), alone) << world << " workers";
}

// Three labels: one at random, one that never holds, one that rarely does.
TEST_F(EvaluatorTest, EachLabelHasAnAreaOfItsOwn) {
  {
    std::ofstream out(job_.data());
    out << "any,none,rare";
    for (int i = 0; i < 64; ++i) out << ",p" << i;
    tensor::RandomStream noise({.seed = 5, .domain = tensor::RandomDomain::kAugmentation});
    for (int row = 0; row < 803; ++row) {
      out << "\n" << noise.Below(2) << ",0," << (noise.Below(8) == 0 ? 1 : 0);
      for (int i = 0; i < 64; ++i) out << "," << noise.Below(17);
    }
  }
  job_.config.trainer.data.csv->classes.reset();
  job_.config.trainer.data.csv->labels = 3;
  const std::vector<Row> rows = Rows();
  ASSERT_EQ(rows.size(), 160U);
  const auto area = [&](size_t label) {
    double won = 0, pairs = 0;
    for (const Row& positive : rows) {
      for (const Row& negative : rows) {
        if (positive.labels[label] != 1 || negative.labels[label] != 0) continue;
        pairs += 1;
        won += positive.logits[label] > negative.logits[label]    ? 1
               : positive.logits[label] == negative.logits[label] ? 0.5
                                                                  : 0;
      }
    }
    return won / pairs;
  };
  double loss = 0, right = 0;
  for (const Row& row : rows) {
    for (size_t label = 0; label < 3; ++label) {
      const double sign = row.labels[label] == 1 ? 1 : -1;
      loss += std::log(1 + std::exp(-sign * row.logits[label]));
      right += (row.logits[label] > 0) == (row.labels[label] == 1) ? 1 : 0;
    }
  }
  const Evaluation alone = Evaluate(1).value();
  ASSERT_EQ(alone.label_aurocs.size(), 3U);
  EXPECT_NEAR(alone.label_aurocs[0].value(), area(0), 1e-9);
  EXPECT_FALSE(alone.label_aurocs[1]);
  EXPECT_NEAR(alone.label_aurocs[2].value(), area(2), 1e-9);
  EXPECT_NEAR(alone.auroc.value(), (area(0) + area(2)) / 2, 1e-9);
  EXPECT_NEAR(alone.loss, loss / 480, 1e-5);
  EXPECT_EQ(alone.accuracy, right / 480);
  EXPECT_FALSE(alone.top5_accuracy);
  for (const int world : {2, 3, 6}) EXPECT_EQ(Evaluate(world), alone) << world << " workers";
}

TEST_F(EvaluatorTest, MeasuresNothingWhereNothingIsHeldOut) {
  job_.config.trainer.data.csv->hold_out_every = 0;
  EXPECT_FALSE(Evaluate(2));
}

TEST_F(EvaluatorTest, TextHasAPerplexity) {
  {
    std::ofstream text(job_.workspace() / "text.txt");
    for (int i = 0; i < 900; ++i) text << "to be, or not to be " << i * 37 % 101 << "; ";
  }
  training::v1alpha1::TrainerConfig& trainer = job_.config.trainer;
  trainer.data.csv.reset();
  trainer.data.text.emplace();
  trainer.data.text->path = "text.txt";
  trainer.data.text->window = 16;
  trainer.model.zoo.reset();
  trainer.model.transformer.emplace();
  trainer.model.transformer->layers = 1;
  trainer.model.transformer->heads = 2;
  trainer.model.transformer->width = 16;
  const Evaluation alone = Evaluate(1).value();
  EXPECT_DOUBLE_EQ(alone.perplexity.value(), std::exp(alone.loss));
  EXPECT_GT(alone.top5_accuracy.value(), alone.accuracy);
  EXPECT_FALSE(alone.auroc);
  EXPECT_EQ(Evaluate(3), alone);
}

// Points by class, the same to train on and held out, from a function instead of a file.
data::Splits Points(int classes) {
  const data::SampleFormat format{.input = {{2}, tensor::DType::kF32}, .classes = classes};
  const auto copy = [classes](uint32_t row, void* input, int32_t* label) {
    *label = static_cast<int32_t>(row) % classes;
    static_cast<float*>(input)[0] = static_cast<float>(*label);
    static_cast<float*>(input)[1] = 1;
  };
  return {.train = data::MakeDataset(format, 26, copy),
          .held_out = data::MakeDataset(format, 26, copy),
          .fingerprint = "points"};
}

class MadeDataTest : public ::testing::Test {
 protected:
  void Use(int classes) {
    training::v1alpha1::TrainerConfig& trainer = job_.config.trainer;
    trainer.data.csv.reset();
    trainer.data.custom.emplace().name = "points";
    trainer.model.zoo.reset();
    training::v1alpha1::Layer layer;
    layer.linear.emplace().features = classes;
    trainer.model.sequential.emplace().layers = {layer};
  }

  std::string ProblemWith(training::v1alpha1::Metric metric, int classes) {
    Use(classes);
    job_.config.trainer.evaluation.metric = metric;
    return Message(CheckMetric(Workload::Over(job_.config.trainer, Points(classes))));
  }

  DigitsJob job_;
};

TEST_F(MadeDataTest, OfTwoClassesHasAnAreaUnderTheCurve) {
  Use(2);
  Workload workload = Workload::Over(job_.config.trainer, Points(2));
  ASSERT_TRUE(workload.CheckModel(kernels::Selection::kFastest).ok());
  Replica replica = Replica::Create(workload).value();
  collectives::testing::Group group(1);
  group.Run([&](collectives::Communicator& communicator) {
    Evaluator evaluator(workload, kernels::Selection::kFastest, replica.weights(),
                        replica.states());
    const auto result = RunOn(evaluator, communicator);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    // All samples of a class are alike, so the areas are those of a single pair.
    const double auroc = result->value().auroc.value();
    EXPECT_TRUE(auroc == 0 || auroc == 0.5 || auroc == 1) << auroc;
  });
}

TEST_F(MadeDataTest, IsRefusedWhereItDoesNotHaveTheMetric) {
  using training::v1alpha1::Metric;
  EXPECT_EQ(ProblemWith(Metric::kAuroc, 2), "");
  EXPECT_EQ(ProblemWith(Metric::kTop5, 6), "");
  EXPECT_EQ(ProblemWith(Metric::kLoss, 3), "");
  EXPECT_EQ(ProblemWith(Metric::kAuroc, 3),
            "spec.trainer.evaluation.metric: AUROC needs samples of 2 classes or of independent "
            "labels, the data has 3 classes and 1 labels a sample; take Accuracy or Loss");
  EXPECT_EQ(ProblemWith(Metric::kTop5, 5),
            "spec.trainer.evaluation.metric: Top5 needs at least 6 classes, the data has 5; take "
            "Accuracy or Loss");
  EXPECT_EQ(ProblemWith(Metric::kPerplexity, 5),
            "spec.trainer.evaluation.metric: Perplexity is measured on text alone, and not with "
            "MeanSquare; take Loss");
}

}  // namespace
}  // namespace ringmaster::train

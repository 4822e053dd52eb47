// Parts of the user's own: that they train as ours do, and what is said of wrong ones.
#include "runtime/train/custom.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "common/status.h"
#include "runtime/train/replica.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/trainer.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {
namespace {

using testing::Cluster;
using ::testing::ContainsRegex;
using testing::DigitsJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TrainUndisturbed;
using testing::TrainWithALoss;

// Points around the corners of a square; those of a diagonal are of one class.
std::unique_ptr<const data::Dataset> Corners(int64_t size) {
  const data::SampleFormat format{.input = {{2}, tensor::DType::kF32}, .classes = 2};
  return data::MakeDataset(format, static_cast<uint32_t>(size),
                           [](uint32_t row, void* input, int32_t* label) {
                             auto* point = static_cast<float*>(input);
                             const float off = static_cast<float>(row % 17) / 40;
                             point[0] = (row % 2 == 0 ? 1.0F : -1.0F) + off;
                             point[1] = (row / 2 % 2 == 0 ? 1.0F : -1.0F) - off;
                             *label = point[0] * point[1] > 0 ? 1 : 0;
                           });
}

data::Splits MakeCorners(Settings& settings, const std::string& /*workspace*/) {
  return {.train = Corners(settings.Integer("samples", 157)), .held_out = Corners(40)};
}

nn::ValueId TwoLayers(nn::ModelBuilder& b, Settings& settings, nn::ValueId x) {
  const int64_t width = settings.Integer("width", 16);
  x = nn::Linear(b, "in", x, width, true, nn::WeightInit::kXavier);
  x = nn::BatchNorm(b, "norm", graph::Tanh(b.graph(), x), 1e-5, 0.9);
  if (b.training()) x = nn::Dropout(b, "dropout", x, settings.Number("dropout", 0.1));
  return nn::Linear(b, "out", x, b.options().classes, true, nn::WeightInit::kXavier);
}

// Heavy-ball momentum.
class HeavyBall : public optim::Optimizer {
 public:
  HeavyBall(OptimizerSetup setup, float momentum)
      : setup_(std::move(setup)), momentum_(momentum), velocity_(setup_.size) {}

  void Update(std::span<float> weights, std::span<const float> sums,
              const optim::UpdateOptions& options) override {
    for (const optim::Segment& segment : setup_.segments) {
      const auto rate = static_cast<float>(options.learning_rate * segment.rate_factor);
      const auto scale = static_cast<float>(options.gradient_scale);
      for (size_t i = segment.begin; i < segment.end; ++i) {
        velocity_[i] = momentum_ * velocity_[i] + scale * sums[i];
        weights[i] -= rate * velocity_[i];
      }
    }
  }
  std::vector<optim::StateBuffer> state() override { return {{"velocity", velocity_}}; }

 private:
  const OptimizerSetup setup_;
  const float momentum_;
  std::vector<float> velocity_;
};

std::unique_ptr<optim::Optimizer> MakeHeavyBall(Settings& settings, const OptimizerSetup& setup) {
  const auto momentum = static_cast<float>(settings.Number("momentum", 0.9));
  return std::make_unique<HeavyBall>(setup, momentum);
}

Parts CornersParts() {
  Parts parts;
  parts.AddNetwork("two-layers", TwoLayers);
  parts.AddDataset("corners", MakeCorners);
  parts.AddOptimizer("heavy-ball", MakeHeavyBall);
  return parts;
}

// A digits job of which nothing is left but its batch and its seed.
class CustomTest : public ::testing::Test {
 protected:
  CustomTest() {
    training::v1alpha1::TrainerConfig& trainer = job_.config.trainer;
    trainer.model = {.custom = training::v1alpha1::Custom{.name = "two-layers"}};
    trainer.data = {.custom = training::v1alpha1::Custom{.name = "corners"}};
    trainer.optimizer = {
        .custom = training::v1alpha1::CustomOptimizer{.name = "heavy-ball", .learning_rate = 0.1}};
    trainer.steps = 120;
    job_.options.parts = CornersParts();
  }

  training::v1alpha1::TrainerConfig& trainer() { return job_.config.trainer; }
  nlohmann::json& model_settings() { return trainer().model.custom->settings; }

  // With the parts of a job that has these besides.
  void UseNetwork(NetworkFunction build) {
    trainer().model.custom->name = "mine";
    job_.options.parts.AddNetwork("mine", std::move(build));
  }
  void UseDataset(DatasetFunction load) {
    trainer().data.custom->name = "mine";
    job_.options.parts.AddDataset("mine", std::move(load));
  }
  void UseOptimizer(OptimizerFunction make) {
    trainer().optimizer.custom->name = "mine";
    job_.options.parts.AddOptimizer("mine", std::move(make));
  }

  // The first error on the way to a replica.
  absl::Status Prepare() {
    auto workload = Workload::Load(trainer(), job_.options.workspace, job_.options.parts);
    if (!workload.ok()) return workload.status();
    RM_RETURN_IF_ERROR(workload->CheckModel(kernels::Selection::kFastest));
    return Replica::Create(*workload).status();
  }
  std::string Problem() {
    const absl::Status status = Prepare();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return Message(status);
  }

  Finished Trained(int world) {
    std::filesystem::remove_all(job_.checkpoints());
    return TrainUndisturbed(job_.config, job_.options, world);
  }

  std::vector<Ending> Endings(int world) {
    Cluster cluster(job_.config, job_.options);
    cluster.Start(world);
    cluster.Announce();
    return cluster.WaitForEndings();
  }

  DigitsJob job_;
};

TEST_F(CustomTest, TrainsTheSameWeightsWithAnyNumberOfWorkersAndAfterALoss) {
  const Finished alone = Trained(1);
  ASSERT_TRUE(alone.evaluation.has_value());
  EXPECT_GT(alone.evaluation->accuracy, 0.9) << "it learns";
  EXPECT_EQ(Trained(3).weights_sha256, alone.weights_sha256);
  std::filesystem::remove_all(job_.checkpoints());
  const Finished recovered = TrainWithALoss(job_.config, job_.options, 2);
  EXPECT_EQ(recovered.weights_sha256, alone.weights_sha256);
  ASSERT_TRUE(recovered.evaluation.has_value());
  EXPECT_EQ(recovered.evaluation->accuracy, alone.evaluation->accuracy);
}

TEST_F(CustomTest, ItsBatchNormsNormaliseOverTheWholeBatchWhereTheManifestSaysSo) {
  const std::string apart = Trained(2).weights_sha256;
  trainer().model.batch_norm = training::v1alpha1::BatchNormOver::kSynchronised;
  const std::string together = Trained(2).weights_sha256;
  EXPECT_NE(together, apart);
  EXPECT_EQ(together, Trained(1).weights_sha256);
}

TEST_F(CustomTest, GivesAPartItsSettings) {
  model_settings() = {{"width", 8}};
  trainer().data.custom->settings = {{"samples", 99}};
  auto workload = Workload::Load(trainer(), job_.options.workspace, job_.options.parts);
  ASSERT_TRUE(workload.ok()) << Message(workload.status());
  EXPECT_EQ(workload->train().size(), 99u);
  ASSERT_TRUE(workload->CheckModel(kernels::Selection::kFastest).ok());
  EXPECT_EQ(workload->layout().parameters[0].shape, tensor::Shape({8, 2}));
  EXPECT_EQ(workload->Describe(), "two-layers, 58 parameters");
}

TEST_F(CustomTest, GivesAnOptimizerTheGroupsOfTheManifest) {
  OptimizerSetup seen;
  UseOptimizer([&seen](Settings& settings, const OptimizerSetup& setup) {
    seen = setup;
    return MakeHeavyBall(settings, setup);
  });
  trainer().optimizer.custom->weight_decay = 0.25;
  trainer().optimizer.groups = {
      {.roles = {training::v1alpha1::ParameterRole::kBias}, .weight_decay_factor = 0}};
  trainer().optimizer.clip = training::v1alpha1::Clip{.global_norm = 1};
  ASSERT_TRUE(Prepare().ok()) << Prepare();
  EXPECT_EQ(seen.weight_decay, 0.25);
  std::vector<std::pair<std::string, double>> decays;
  ASSERT_EQ(seen.parameters.size(), seen.segments.size());
  for (size_t i = 0; i < seen.parameters.size(); ++i) {
    EXPECT_EQ(seen.parameters[i].offset, seen.segments[i].begin);
    decays.emplace_back(seen.parameters[i].name, seen.segments[i].decay_factor);
  }
  EXPECT_THAT(decays,
              ElementsAre(Pair("in.weight", 1), Pair("in.bias", 0), Pair("norm.gamma", 1),
                          Pair("norm.beta", 1), Pair("out.weight", 1), Pair("out.bias", 0)));
}

TEST_F(CustomTest, SaysWhichPartsThereAre) {
  trainer().model.custom->name = "tow-layers";
  EXPECT_EQ(Problem(), "this trainer knows no network \"tow-layers\"; it knows two-layers");
  trainer().data.custom->name = "corner";
  EXPECT_EQ(Problem(), "this trainer knows no data set \"corner\"; it knows corners");
  job_.options.parts = {};
  EXPECT_EQ(Problem(),
            "this trainer knows no data set \"corner\"; it knows none: is spec.trainer.program the "
            "one that you mean?");
}

TEST_F(CustomTest, RefusesSettingsThatArePartOfNothing) {
  model_settings() = {{"widht", 8}};
  EXPECT_EQ(Problem(),
            "network \"two-layers\": spec.trainer.model.custom.settings.widht: unknown setting; "
            "there are dropout, width");
  model_settings() = {{"width", "wide"}};
  EXPECT_EQ(Problem(),
            "network \"two-layers\": spec.trainer.model.custom.settings.width: \"wide\" is not a "
            "whole number");
  trainer().optimizer.custom->settings = {{"momentum", {0.9}}};
  model_settings() = {{"width", 4}};
  EXPECT_EQ(Problem(),
            "optimizer \"heavy-ball\": spec.trainer.optimizer.custom.settings.momentum: [0.9] is "
            "not a number");
}

TEST_F(CustomTest, NamesTheLayerAndTheShapesThatDoNotFit) {
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    return nn::Conv2d(b, "conv1", x, {.channels = 4, .kernel = 3});
  });
  EXPECT_EQ(Problem(),
            "network \"mine\": layer \"conv1\": needs [batch, channels, height, width], got [4, "
            "2]");
}

TEST_F(CustomTest, NamesTheShapesOfANetworkThatEndsElsewhere) {
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    return nn::Linear(b, "out", x, 5, true, nn::WeightInit::kXavier);
  });
  EXPECT_EQ(Problem(),
            "network \"mine\": the network ends with [4, 5], but 4 samples of this data need [4, "
            "2]: labels of shape [] and 2 classes");
}

TEST_F(CustomTest, RefusesANetworkThatReturnsNothingOfItsGraph) {
  for (const nn::ValueId wrong : {nn::ValueId{}, nn::ValueId{1000}}) {
    job_.options.parts = CornersParts();
    UseNetwork([wrong](nn::ModelBuilder&, Settings&, nn::ValueId) { return wrong; });
    EXPECT_EQ(Problem(),
              "network \"mine\": the network ends with no value of its graph; return its logits");
  }
}

TEST_F(CustomTest, RefusesALayerOnAScalar) {
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    const nn::ValueId sum = graph::SumAll(b.graph(), x);
    return nn::Linear(b, "out", sum, 2, true, nn::WeightInit::kXavier);
  });
  EXPECT_EQ(Problem(), "network \"mine\": layer \"out\": needs [..., features], got a scalar");
}

TEST_F(CustomTest, RefusesParametersThatDependOnTheModeOrTheBatch) {
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    if (b.training()) x = nn::LayerNorm(b, "norm", x);
    return nn::Linear(b, "out", x, 2, true, nn::WeightInit::kXavier);
  });
  EXPECT_EQ(Problem(),
            "network \"mine\": its parameters depend on the mode or on the batch: parameters 0 is "
            "norm.gamma [2] and then out.weight [2, 2]; declare the same in the same order, "
            "whatever b.options() says of these");
  job_.options.parts = CornersParts();
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    const nn::ValueId each = b.Parameter("each", b.shape(x), nn::Initialiser::Constant(0));
    return nn::Linear(b, "out", graph::Add(b.graph(), x, each), 2, true, nn::WeightInit::kXavier);
  });
  EXPECT_THAT(Problem(), HasSubstr("each [4, 2] and then each [5, 2]"));
}

TEST_F(CustomTest, RefusesAStatisticOfAnotherShape) {
  UseNetwork([](nn::ModelBuilder& b, Settings&, nn::ValueId x) {
    b.RunningStatistic("mean", {3}, 0, 0.9, graph::SumAll(b.graph(), x));
    return nn::Linear(b, "out", x, 2, true, nn::WeightInit::kXavier);
  });
  EXPECT_EQ(Problem(),
            "network \"mine\": running statistic \"mean\" of shape [3]: its statistic is f32[]");
}

TEST_F(CustomTest, RefusesADataSetWithoutSamples) {
  trainer().data.custom->settings = {{"samples", 0}};
  EXPECT_EQ(Problem(), "data set \"corners\": no samples to train on; at least 1 is needed");
}

// Points of two classes, but for one of label `of_60`.
std::unique_ptr<const data::Dataset> PointsOfTwoClasses(uint32_t size, int32_t of_60) {
  const data::SampleFormat format{.input = {{2}, tensor::DType::kF32}, .classes = 2};
  return data::MakeDataset(format, size, [of_60](uint32_t row, void* input, int32_t* label) {
    std::fill_n(static_cast<float*>(input), 2, static_cast<float>(row % 2));
    *label = row == 60 ? of_60 : static_cast<int32_t>(row % 2);
  });
}

// Nobody has read the labels before: the data set has said itself what tells it from others.
TEST_F(CustomTest, NamesTheLabelThatIsNoClassWhereTheLossIsNoNumber) {
  UseDataset([](Settings&, const std::string&) {
    return data::Splits{.train = PointsOfTwoClasses(100, 2), .fingerprint = "mine"};
  });
  for (const Ending& ending : Endings(2)) {
    EXPECT_EQ(ending.exit_code, contract::kExitDiverged);
    EXPECT_THAT(ending.message,
                ContainsRegex("; on worker [01] the data is wrong in sample 60: label 2 is not in "
                              "0..1 \\(2 classes\\): "));
  }
}

TEST_F(CustomTest, NamesTheHeldOutLabelThatIsNoClassWhereItIsEvaluated) {
  UseDataset([](Settings&, const std::string&) {
    return data::Splits{.train = PointsOfTwoClasses(100, 0),
                        .held_out = PointsOfTwoClasses(80, -7),
                        .fingerprint = "mine"};
  });
  const Ending ending = Endings(1).front();
  EXPECT_EQ(ending.exit_code, contract::kExitBadData);
  EXPECT_EQ(ending.message,
            "the data is wrong in held-out sample 60: label -7 is not in 0..1 (2 classes)");
}

TEST_F(CustomTest, PassesOnWhatAPartSaysAndThrows) {
  UseDataset([](Settings&, const std::string& workspace) -> absl::StatusOr<data::Splits> {
    return absl::NotFoundError(workspace.empty() ? "no workspace" : "no such file");
  });
  EXPECT_EQ(Prepare(), absl::NotFoundError("data set \"mine\": no such file"));
  job_.options.parts = CornersParts();
  UseDataset([](Settings&, const std::string&) -> absl::StatusOr<data::Splits> {
    throw std::runtime_error("disk on fire");
  });
  EXPECT_EQ(Problem(), "data set \"mine\": threw: disk on fire");
  job_.options.parts = CornersParts();
  trainer().data.custom->name = "corners";
  UseNetwork([](nn::ModelBuilder&, Settings&, nn::ValueId) -> nn::ValueId { throw 7; });
  EXPECT_EQ(Problem(), "network \"mine\": threw something that is no std::exception");
}

class Forgetful : public optim::Optimizer {
 public:
  explicit Forgetful(std::vector<optim::StateBuffer> state) : state_(std::move(state)) {}
  void Update(std::span<float>, std::span<const float>, const optim::UpdateOptions&) override {}
  std::vector<optim::StateBuffer> state() override { return state_; }

 private:
  const std::vector<optim::StateBuffer> state_;
};

TEST_F(CustomTest, RefusesAnOptimizerWhoseMemoryNoCheckpointCanHold) {
  std::vector<float> memory(1000);
  const auto with = [this, &memory](std::vector<std::pair<std::string, size_t>> buffers) {
    job_.options.parts = CornersParts();
    UseOptimizer([buffers, &memory](Settings&, const OptimizerSetup& setup) {
      std::vector<optim::StateBuffer> state;
      for (const auto& [name, less] : buffers)
        state.push_back({name, std::span(memory).first(setup.size - less)});
      return std::make_unique<Forgetful>(state);
    });
    return Problem();
  };
  EXPECT_THAT(with({{"m", 1}}), HasSubstr("optimizer \"mine\": its state buffer \"m\" has "));
  EXPECT_THAT(with({{"m", 0}, {"m", 0}}), HasSubstr("\"m\" needs a name of its own"));
  EXPECT_THAT(with({{"", 0}}), HasSubstr("\"\" needs a name of its own"));
}

TEST_F(CustomTest, RefusesAnOptimizerThatIsNone) {
  UseOptimizer([](Settings&, const OptimizerSetup&) { return std::unique_ptr<HeavyBall>(); });
  EXPECT_EQ(Problem(), "optimizer \"mine\": its function gave none");
}

TEST(PartsTest, KeepsTheFirstMistake) {
  Parts parts = CornersParts();
  EXPECT_TRUE(parts.status().ok());
  parts.AddNetwork("corners", TwoLayers);  // another kind
  EXPECT_TRUE(parts.status().ok());
  parts.AddNetwork("two-layers", TwoLayers);
  parts.AddDataset("", MakeCorners);
  EXPECT_EQ(parts.status(), absl::InvalidArgumentError("network \"two-layers\" is registered "
                                                       "twice"));
  Parts others;
  others.AddDataset("", MakeCorners);
  EXPECT_EQ(Message(others.status()), "data set \"\" needs a name");
  Parts empty;
  empty.AddOptimizer("none", nullptr);
  EXPECT_EQ(Message(empty.status()), "optimizer \"none\" has no function");
}

}  // namespace
}  // namespace ringmaster::train

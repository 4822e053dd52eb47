#include "runtime/nn/model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::nn {
namespace {

namespace config = training::v1alpha1;
using tensor::DType;
using ::testing::HasSubstr;
using ::testing::Not;

config::Model LenetBn() {
  config::Model model;
  model.zoo.emplace();
  model.zoo->name = "lenet-bn";
  return model;
}

config::Model SmallTransformer() {
  config::Model model;
  model.transformer.emplace();
  model.transformer->layers = 2;
  model.transformer->heads = 4;
  model.transformer->width = 32;
  model.transformer->dropout = 0.1;
  return model;
}

config::Layer LinearLayer(int features) {
  config::Layer layer;
  layer.linear.emplace();
  layer.linear->features = features;
  return layer;
}

config::Layer ConvLayer(int channels, int kernel) {
  config::Layer layer;
  layer.conv2d.emplace();
  layer.conv2d->channels = channels;
  layer.conv2d->kernel = kernel;
  return layer;
}

config::Layer FlattenLayer() {
  config::Layer layer;
  layer.flatten.emplace();
  return layer;
}

config::Layer TanhLayer() {
  config::Layer layer;
  layer.tanh.emplace();
  return layer;
}

config::Layer ReluLayer() {
  config::Layer layer;
  layer.relu.emplace();
  return layer;
}

config::Model SequentialOf(std::vector<config::Layer> layers) {
  config::Model model;
  model.sequential.emplace();
  model.sequential->layers = std::move(layers);
  return model;
}

// 8x8 images of ten classes.
BuildOptions Digits(int64_t batch = 4, Mode mode = Mode::kTraining) {
  return {.mode = mode, .batch = batch, .sample = {{1, 8, 8}, DType::kF32}, .classes = 10};
}

BuildOptions Text(int64_t batch = 2, Mode mode = Mode::kTraining) {
  return {.mode = mode,
          .batch = batch,
          .sample = {{16}, DType::kI32},
          .label_shape = {16},
          .classes = 65};
}

Model MustBuild(const config::Model& config, const BuildOptions& options) {
  absl::StatusOr<Model> model = BuildModel(config, options);
  EXPECT_TRUE(model.ok()) << Message(model.status());
  return model.ok() ? *std::move(model) : Model();
}

std::string ErrorOf(const config::Model& config, const BuildOptions& options) {
  const absl::StatusOr<Model> model = BuildModel(config, options);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(model.status());
}

std::set<std::string> OutputsOf(const Model& model) {
  std::set<std::string> names;
  for (const graph::NamedValue& output : model.graph.outputs()) names.insert(output.name);
  return names;
}

std::vector<std::string> NamesOf(const Model& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters) names.push_back(parameter.name);
  return names;
}

TEST(ModelTest, LenetBnHasItsLayersAndSomeSixtyThousandParameters) {
  const Model model = MustBuild(LenetBn(), Digits());
  EXPECT_EQ(model.name, "lenet-bn");
  EXPECT_EQ(model.ParameterCount(), 59'970);
  EXPECT_THAT(
      NamesOf(model),
      ::testing::ElementsAre("conv1.weight", "bn1.gamma", "bn1.beta", "conv2.weight", "bn2.gamma",
                             "bn2.beta", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_EQ(model.inputs.ToString(), "f32[4, 1, 8, 8]");
  EXPECT_EQ(model.labels.ToString(), "i32[4]");
}

TEST(ModelTest, AListOfLayersDilatesGroupsAndPoolsToASize) {
  config::Layer wide = ConvLayer(6, 3), depthwise = ConvLayer(12, 3), pool;
  wide.conv2d->dilation = 3;
  depthwise.conv2d->groups = 6;
  depthwise.conv2d->padding = 1;
  pool.adaptive_average_pool.emplace();
  pool.adaptive_average_pool->size = 1;
  const Model model =
      MustBuild(SequentialOf({wide, depthwise, pool, FlattenLayer(), LinearLayer(10)}), Digits());
  // 8 points less 2 x 3 leave 2.
  EXPECT_THAT(ToString(model.graph), HasSubstr("f32[4, 6, 2, 2]"));
  EXPECT_EQ(model.parameters[2].name, "conv2d2.weight");
  EXPECT_EQ(model.parameters[2].shape, (Shape{12, 1, 3, 3}));
  EXPECT_EQ(model.parameters[4].shape, (Shape{10, 12}));
}

TEST(ModelTest, ATrainingGraphGivesEveryGradientAndStatistic) {
  const Model model = MustBuild(LenetBn(), Digits());
  std::set<std::string> wanted = {kLossSum, kCorrect};
  for (const Parameter& parameter : model.parameters) wanted.insert(parameter.gradient);
  for (const State& state : model.states) wanted.insert(state.statistic);
  EXPECT_EQ(OutputsOf(model), wanted);
  EXPECT_EQ(model.states.size(), 4u);
  for (const graph::NamedValue& output : model.graph.outputs()) {
    const auto parameter = std::ranges::find(model.parameters, output.name, &Parameter::gradient);
    if (parameter == model.parameters.end()) continue;
    EXPECT_EQ(model.graph.shape(output.value), parameter->shape) << output.name;
  }
}

TEST(ModelTest, AnEvaluationGraphReadsTheStatesAndDropsNothing) {
  const Model model = MustBuild(LenetBn(), Digits(4, Mode::kEvaluation));
  EXPECT_EQ(OutputsOf(model), (std::set<std::string>{kLossSum, kCorrect, kLogits}));
  const std::string text = ToString(model.graph);
  EXPECT_THAT(text, HasSubstr("bn1.running_variance"));
  EXPECT_THAT(text, Not(HasSubstr("dropout")));
  EXPECT_THAT(ToString(MustBuild(LenetBn(), Digits()).graph), HasSubstr("dropout"));
}

TEST(ModelTest, IndependentLabelsHaveAScoreAndALossEach) {
  BuildOptions options = Digits(4, Mode::kEvaluation);
  options.classes = 14;
  options.label_shape = {14};
  options.independent_labels = true;
  const Model model = MustBuild(LenetBn(), options);
  EXPECT_EQ(model.labels.shape, (Shape{4, 14}));
  EXPECT_THAT(ToString(model.graph), HasSubstr("binary_cross_entropy"));
  options.mode = Mode::kTraining;
  EXPECT_THAT(ToString(MustBuild(LenetBn(), options).graph),
              HasSubstr("binary_cross_entropy_grad"));
  EXPECT_EQ(ErrorOf(SequentialOf({FlattenLayer(), LinearLayer(12)}), options),
            "model: the network ends with [4, 12], but 4 samples of this data need [4, 14]: labels "
            "of shape [14] and 14 classes");
}

TEST(ModelTest, ClassesHaveTheLossThatIsAskedFor) {
  BuildOptions options = Digits();
  options.loss = Loss::kMeanSquare;
  EXPECT_THAT(ToString(MustBuild(LenetBn(), options).graph), HasSubstr("squared_error_grad"));
  config::Layer log_softmax;
  log_softmax.log_softmax.emplace();
  options.loss = Loss::kNegativeLogLikelihood;
  const std::string graph = ToString(
      MustBuild(SequentialOf({FlattenLayer(), LinearLayer(10), log_softmax}), options).graph);
  EXPECT_THAT(graph, HasSubstr("log-softmax3: log_softmax("));
  EXPECT_THAT(graph, HasSubstr("loss: nll("));
  EXPECT_THAT(graph, HasSubstr("log_softmax_grad"));
}

TEST(ModelTest, TheZoosRunningStatisticsKeepAsMuchAsIsAskedFor) {
  const auto momentum = [](const config::Model& model) {
    return MustBuild(model, Digits()).states.front().momentum;
  };
  config::Model model = LenetBn();
  EXPECT_EQ(momentum(model), 0.9);
  model.zoo->batch_norm_momentum = 0.75;
  EXPECT_EQ(momentum(model), 0.75);
  model.zoo = config::Zoo{.name = "alexnet", .batch_norm_momentum = 0.75};
  EXPECT_EQ(ErrorOf(model, Digits()), "model: alexnet has no batch norm: leave its momentum out");
}

TEST(ModelTest, ParametersAndStatesDependOnTheConfigurationAlone) {
  for (const auto& [config, options] :
       {std::pair(LenetBn(), Digits()), std::pair(SmallTransformer(), Text())}) {
    const Model model = MustBuild(config, options);
    for (const Mode mode : {Mode::kTraining, Mode::kEvaluation}) {
      for (const int64_t batch : {1, 7}) {
        BuildOptions other_options = options;
        other_options.mode = mode;
        other_options.batch = batch;
        const Model other = MustBuild(config, other_options);
        EXPECT_EQ(other.parameters, model.parameters);
        EXPECT_EQ(other.states, model.states);
        EXPECT_EQ(other.parameter_floats, model.parameter_floats);
        EXPECT_EQ(other.state_floats, model.state_floats);
      }
    }
  }
}

TEST(ModelTest, FlatRangesAreAlignedAndDoNotOverlap) {
  const Model model = MustBuild(LenetBn(), Digits());
  size_t next = 0;
  for (const Parameter& parameter : model.parameters) {
    EXPECT_EQ(parameter.offset % 16, 0u) << parameter.name;
    EXPECT_GE(parameter.offset, next) << parameter.name;
    next = parameter.offset + static_cast<size_t>(parameter.shape.elements());
  }
  EXPECT_GE(model.parameter_floats, next);
  EXPECT_LT(model.parameter_floats, next + 16);
}

TEST(ModelTest, TheZoosDropoutRateCanBeSet) {
  config::Model none = LenetBn();
  none.zoo->dropout = 0;
  EXPECT_THAT(ToString(MustBuild(none, Digits()).graph), Not(HasSubstr("dropout")));
}

TEST(ModelTest, ATransformerPredictsACharacterForEachPlace) {
  const Model model = MustBuild(SmallTransformer(), Text());
  EXPECT_EQ(model.labels.ToString(), "i32[2, 16]");
  constexpr int64_t kWidth = 32, kBlock = 12 * kWidth * kWidth + 13 * kWidth;
  EXPECT_EQ(model.ParameterCount(), 2 * 65 * kWidth + 16 * kWidth + 2 * kBlock + 2 * kWidth);
  EXPECT_TRUE(model.states.empty());
}

TEST(ModelTest, NamesLayersByKindAndPlaceUnlessTheyHaveNames) {
  config::Layer named = LinearLayer(10);
  named.name = "head";
  const Model model =
      MustBuild(SequentialOf({ConvLayer(2, 3), FlattenLayer(), LinearLayer(5), named}), Digits());
  EXPECT_THAT(NamesOf(model),
              ::testing::ElementsAre("conv2d1.weight", "conv2d1.bias", "linear3.weight",
                                     "linear3.bias", "head.weight", "head.bias"));
}

TEST(ModelTest, DrawsWeightsForTheActivationThatFollows) {
  const Model model = MustBuild(SequentialOf({FlattenLayer(), LinearLayer(36), ReluLayer(),
                                              LinearLayer(64), TanhLayer(), LinearLayer(10)}),
                                Digits());
  // Kaiming for 64 inputs, Xavier for 36 + 64 and for 64 + 10.
  EXPECT_DOUBLE_EQ(model.parameters[0].initialiser.value, std::sqrt(6.0 / 64));
  EXPECT_DOUBLE_EQ(model.parameters[2].initialiser.value, std::sqrt(6.0 / 100));
  EXPECT_DOUBLE_EQ(model.parameters[4].initialiser.value, std::sqrt(6.0 / 74));
}

TEST(ModelTest, EveryActivationOfAListIsItsOp) {
  std::vector<config::Layer> layers = {FlattenLayer()};
  const auto add = [&](std::optional<config::Empty> config::Layer::*kind) {
    (layers.emplace_back().*kind).emplace();
  };
  for (const auto kind :
       {&config::Layer::relu, &config::Layer::gelu, &config::Layer::tanh, &config::Layer::sigmoid,
        &config::Layer::silu, &config::Layer::exact_gelu})
    add(kind);
  layers.push_back(LinearLayer(10));
  const std::string graph = ToString(MustBuild(SequentialOf(layers), Digits()).graph);
  for (const char* line : {"relu2: relu(", "gelu3: gelu(", "tanh4: tanh(", "sigmoid5: sigmoid(",
                           "silu6: silu(", "exact-gelu7: exact_gelu("})
    EXPECT_THAT(graph, HasSubstr(line));
}

TEST(ModelTest, EveryPoolingOfAListIsItsOp) {
  std::vector<config::Layer> layers(4);
  layers[0].max_pool = {.kernel = 2, .stride = 1};
  layers[1].average_pool = {.kernel = 2, .stride = 1};
  layers[2].adaptive_max_pool = {.size = 4};
  layers[3].adaptive_average_pool = {.size = 3};
  layers.push_back(FlattenLayer());
  layers.push_back(LinearLayer(10));
  const std::string graph = ToString(MustBuild(SequentialOf(layers), Digits()).graph);
  for (const char* line :
       {"max-pool1: max_pool2d(", "average-pool2: avg_pool2d(",
        "adaptive-max-pool3: adaptive_max_pool2d(", "adaptive-average-pool4: adaptive_avg_pool2d("})
    EXPECT_THAT(graph, HasSubstr(line));
}

TEST(ModelErrorTest, NamesTheLayerAndTheShapes) {
  EXPECT_EQ(ErrorOf(SequentialOf({LinearLayer(10)}), Digits()),
            "model: layer \"linear1\": needs [batch, features], got [4, 1, 8, 8]; put a flatten "
            "before it");
  EXPECT_EQ(ErrorOf(SequentialOf({FlattenLayer(), ConvLayer(2, 3)}), Digits()),
            "model: layer \"conv2d2\": needs [batch, channels, height, width], got [4, 64]");
  EXPECT_THAT(ErrorOf(SequentialOf({ConvLayer(2, 9), FlattenLayer(), LinearLayer(10)}), Digits()),
              ::testing::AllOf(HasSubstr("model: conv2d1"), HasSubstr("[4, 1, 8, 8]")));
}

TEST(ModelErrorTest, NamesANetworkThatEndsWithAnotherNumberOfClasses) {
  EXPECT_EQ(ErrorOf(SequentialOf({FlattenLayer(), LinearLayer(12)}), Digits()),
            "model: the network ends with [4, 12], but 4 samples of this data need [4, 10]: labels "
            "of shape [] and 10 classes");
}

TEST(ModelErrorTest, RefusesANameUsedTwiceAnUnknownNetworkAndNoKind) {
  config::Layer flatten = FlattenLayer(), linear = LinearLayer(10);
  flatten.name = linear.name = "twin";
  EXPECT_EQ(ErrorOf(SequentialOf({flatten, linear}), Digits()),
            "model: layer \"twin\": the name is used twice");
  config::Model zoo = LenetBn();
  zoo.zoo->name = "lenat";
  EXPECT_EQ(ErrorOf(zoo, Digits()),
            "model: no network is called \"lenat\"; known: lenet, lenet-bn, alexnet, "
            "vgg-16, resnet-18, resnet-50, densenet-121, gpt-2");
  EXPECT_EQ(ErrorOf(SequentialOf({config::Layer()}), Digits()),
            "model: layer \"1\": says no kind of layer");
  EXPECT_EQ(ErrorOf(config::Model(), Digits()),
            "model: name one of zoo, sequential and transformer; a custom one belongs to a trainer "
            "of your own");
}

TEST(ModelErrorTest, RefusesANetworkForTheOtherKindOfData) {
  EXPECT_THAT(ErrorOf(SmallTransformer(), Digits()), HasSubstr("needs text"));
  EXPECT_THAT(ErrorOf(LenetBn(), Text()), HasSubstr("train gpt-2 or a transformer on text"));
  EXPECT_THAT(ErrorOf(SequentialOf({LinearLayer(65)}), Text()),
              HasSubstr("train a transformer on text"));
}

TEST(ModelErrorTest, RefusesAWidthThatHeadsDoNotDivide) {
  config::Model model = SmallTransformer();
  model.transformer->heads = 5;
  EXPECT_EQ(ErrorOf(model, Text()),
            "model: layer \"transformer\": width 32 is no multiple of heads 5");
}

TEST(ModelErrorTest, RefusesAModelThatNoMemoryHolds) {
  constexpr int kHuge = 2'000'000'000;
  EXPECT_THAT(
      ErrorOf(SequentialOf({FlattenLayer(), LinearLayer(kHuge), LinearLayer(kHuge)}), Digits()),
      HasSubstr("parameter \"linear2.weight\" of shape [2000000000, 64]: the model is too large"));
}

}  // namespace
}  // namespace ringmaster::nn

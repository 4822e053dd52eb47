#include "runtime/nn/zoo.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/networks.h"
#include "common/status.h"

namespace ringmaster::nn {
namespace {

using ::testing::HasSubstr;

ZooSettings Named(const std::string& name) {
  return {.name = name};
}

BuildOptions Images(int64_t channels, int64_t side, int64_t classes) {
  return {.batch = 2, .sample = {{channels, side, side}, tensor::DType::kF32}, .classes = classes};
}

BuildOptions Text(int64_t window, int64_t tokens) {
  return {.batch = 2,
          .sample = {{window}, tensor::DType::kI32},
          .label_shape = {window},
          .classes = tokens};
}

Model MustBuild(const ZooSettings& settings, const BuildOptions& options) {
  absl::StatusOr<Model> model = BuildZoo(settings, options);
  EXPECT_TRUE(model.ok()) << Message(model.status());
  return model.ok() ? *std::move(model) : Model();
}

std::string ErrorOf(const ZooSettings& settings, const BuildOptions& options) {
  const absl::StatusOr<Model> model = BuildZoo(settings, options);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(model.status());
}

const Parameter& ParameterOf(const Model& model, const std::string& name) {
  const auto found = std::ranges::find(model.parameters, name, &Parameter::name);
  if (found == model.parameters.end()) throw std::runtime_error("no parameter " + name);
  return *found;
}

struct Published {
  const char* name;
  int64_t parameters;
};

void PrintTo(const Published& p, std::ostream* os) {
  *os << p.name;
}

class PublishedCountTest : public ::testing::TestWithParam<Published> {};

// Sums of numel() in torchvision, for images of 3x224x224 and 1,000 classes.
TEST_P(PublishedCountTest, IsThatOfTorchvision) {
  const Model model = MustBuild(Named(GetParam().name), Images(3, 224, 1000));
  EXPECT_EQ(model.name, GetParam().name);
  EXPECT_EQ(model.ParameterCount(), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PublishedCountTest,
                         ::testing::Values(Published{"alexnet", 61'100'840},
                                           Published{"vgg-16", 138'357'544},
                                           Published{"resnet-18", 11'689'512},
                                           Published{"resnet-50", 25'557'032},
                                           Published{"densenet-121", 7'978'856}),
                         [](const auto& info) {
                           std::string name = info.param.name;  // without what a test may not have
                           std::erase(name, '-');
                           return name;
                         });

TEST(ZooTest, Gpt2HasItsPublishedParametersWhateverTheWindow) {
  for (const int64_t window : {64, 1024}) {
    EXPECT_EQ(MustBuild(Named("gpt-2"), Text(window, 50257)).ParameterCount(), 124'439'808);
  }
}

TEST(ZooTest, LenetHasThoseOfCaffe) {
  EXPECT_EQ(MustBuild(Named("lenet"), Images(1, 28, 10)).ParameterCount(), 431'080);
}

TEST(ZooTest, TheClassesAndTheImagesAreTheDatas) {
  const Model model = MustBuild(Named("resnet-18"), Images(1, 48, 14));
  EXPECT_EQ(ParameterOf(model, "conv1.weight").shape, (Shape{64, 1, 7, 7}));
  EXPECT_EQ(ParameterOf(model, "fc.weight").shape, (Shape{14, 512}));
}

TEST(ZooTest, TheWidthScalesHiddenLayersToMultiplesOfEight) {
  ZooSettings half = Named("resnet-50");
  half.width = 0.4;
  const Model model = MustBuild(half, Images(3, 64, 10));
  EXPECT_EQ(ParameterOf(model, "conv1.weight").shape, (Shape{24, 3, 7, 7}));
  EXPECT_EQ(ParameterOf(model, "layer4.2.conv3.weight").shape, (Shape{768, 192, 1, 1}));
  EXPECT_EQ(ParameterOf(model, "fc.weight").shape, (Shape{10, 768}));
  ZooSettings thin = Named("gpt-2");
  thin.width = 0.01;
  thin.layers = 2;
  const Model text = MustBuild(thin, Text(16, 65));
  EXPECT_EQ(ParameterOf(text, "wte.weight").shape, (Shape{65, 64}));
  EXPECT_EQ(text.ParameterCount(), 65 * 64 + 1024 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
}

TEST(ZooTest, WeightsBeginAsPublished) {
  const auto initial = [](const Model& model, const std::string& name) {
    return ParameterOf(model, name).initialiser;
  };
  const Model lenet = MustBuild(Named("lenet"), Images(1, 28, 10));
  for (const auto& [layer, fan_in] : {std::pair("conv1", 25), std::pair("conv2", 500),
                                      std::pair("ip1", 800), std::pair("ip2", 500)}) {
    const Initialiser weight = initial(lenet, std::string(layer) + ".weight");
    EXPECT_EQ(weight.kind, Initialiser::Kind::kUniform) << layer;
    EXPECT_DOUBLE_EQ(weight.value, std::sqrt(3.0 / fan_in)) << layer;
    EXPECT_EQ(initial(lenet, std::string(layer) + ".bias"), Initialiser::Constant(0)) << layer;
  }
  const Model resnet = MustBuild(Named("resnet-50"), Images(3, 64, 10));
  EXPECT_EQ(initial(resnet, "layer1.0.conv2.weight"),
            Initialiser::Normal(std::sqrt(2.0 / (64 * 9))));
  EXPECT_EQ(initial(resnet, "layer1.0.conv3.weight"), Initialiser::Normal(std::sqrt(2.0 / 256)));
  EXPECT_EQ(initial(resnet, "layer1.0.bn3.gamma"), Initialiser::Constant(1));
  EXPECT_EQ(initial(resnet, "fc.bias"), Initialiser::Uniform(1 / std::sqrt(2048.0)));
  const Model densenet = MustBuild(Named("densenet-121"), Images(3, 64, 10));
  EXPECT_EQ(initial(densenet, "features.denseblock1.denselayer2.conv1.weight"),
            Initialiser::Normal(std::sqrt(2.0 / 96)));
  EXPECT_EQ(initial(densenet, "classifier.weight"), Initialiser::Uniform(1 / std::sqrt(1024.0)));
  EXPECT_EQ(initial(densenet, "classifier.bias"), Initialiser::Constant(0));
  const Model vgg = MustBuild(Named("vgg-16"), Images(3, 64, 10));
  EXPECT_EQ(initial(vgg, "features.2.weight"), Initialiser::Normal(std::sqrt(2.0 / (64 * 9))));
  EXPECT_EQ(initial(vgg, "classifier.3.weight"), Initialiser::Normal(0.01));
  const Model alexnet = MustBuild(Named("alexnet"), Images(3, 64, 10));
  EXPECT_EQ(initial(alexnet, "features.0.bias"), Initialiser::Uniform(1 / std::sqrt(363.0)));
  const Model gpt2 = MustBuild(Named("gpt-2"), Text(16, 65));
  EXPECT_EQ(initial(gpt2, "wpe.weight"), Initialiser::Normal(0.01));
  EXPECT_EQ(initial(gpt2, "block12.mlp.up.weight"), Initialiser::Normal(0.02));
  EXPECT_EQ(initial(gpt2, "block12.mlp.down.weight"), Initialiser::Normal(0.02 / std::sqrt(24.0)));
}

// The operator refuses by networks::kNetworks what BuildZoo refuses by its layers.
TEST(ZooTest, ImagesFitFromTheSmallestSideOn) {
  for (const networks::Network& network : networks::kNetworks) {
    if (network.reads_text()) continue;
    const auto build = [&](int64_t height, int64_t width) {
      BuildOptions options = Images(3, network.smallest_side, 10);
      options.sample.shape = {3, height, width};
      return BuildZoo({.name = std::string(network.name), .width = 0.1}, options);
    };
    const int64_t side = network.smallest_side;
    const auto smallest = build(side, side);
    EXPECT_TRUE(smallest.ok()) << network.name << ": " << Message(smallest.status());
    if (smallest.ok()) {
      EXPECT_EQ(!smallest->states.empty(), network.batch_norm) << network.name;
    }
    if (side == 1) continue;
    EXPECT_FALSE(build(side - 1, side + 100).ok()) << network.name;
    EXPECT_FALSE(build(side + 100, side - 1).ok()) << network.name;
  }
}

TEST(ZooTest, AnImageThatIsTooSmallIsRefusedByLayerAndShapes) {
  EXPECT_EQ(ErrorOf(Named("alexnet"), Images(3, 32, 10)),
            "features.12 (max_pool2d): the window is larger than the padded image; inputs: "
            "f32[2, 256, 1, 1]");
}

TEST(ZooTest, SettingsThatANetworkLacksAreRefused) {
  ZooSettings dropout = Named("resnet-18");
  dropout.dropout = 0.5;
  EXPECT_EQ(ErrorOf(dropout, Images(3, 32, 10)), "resnet-18 has no dropout: leave it out");
  ZooSettings layers = Named("vgg-16");
  layers.layers = 3;
  EXPECT_EQ(ErrorOf(layers, Images(3, 32, 10)),
            "the number of vgg-16's layers is fixed: leave it out");
}

TEST(ZooTest, SettingsOutsideTheirRangeAreRefused) {
  for (const double width : {0.0, -1.0, 17.0, std::nan("")}) {
    EXPECT_THAT(ErrorOf({.name = "lenet", .width = width}, Images(1, 28, 10)),
                HasSubstr("does not lie in (0, 16]"));
  }
  EXPECT_EQ(ErrorOf({.name = "gpt-2", .layers = 0}, Text(16, 65)),
            "0 layers: at least 1 is needed");
}

TEST(ZooTest, LabelsAreSmoothedInTrainingAlone) {
  BuildOptions options = Images(1, 28, 10);
  options.label_smoothing = 0.1;
  EXPECT_THAT(ToString(MustBuild(Named("lenet"), options).graph), HasSubstr("{smoothing=0.1}"));
  options.mode = Mode::kEvaluation;
  EXPECT_THAT(ToString(MustBuild(Named("lenet"), options).graph), HasSubstr("{smoothing=0}"));
}

TEST(ZooTest, DataThatANetworkDoesNotReadIsRefused) {
  EXPECT_THAT(ErrorOf(Named("gpt-2"), Images(3, 32, 10)), HasSubstr("gpt-2 needs text"));
  EXPECT_THAT(ErrorOf(Named("vgg-16"), Text(16, 65)), HasSubstr("vgg-16 needs images"));
  BuildOptions flat = Images(3, 32, 10);
  flat.sample.shape = {3072};
  EXPECT_EQ(ErrorOf(Named("lenet"), flat),
            "lenet needs images, [channels, height, width] of f32; the data has f32[3072]");
  EXPECT_THAT(ErrorOf(Named("gpt-2"), Text(2000, 65)),
              HasSubstr("windows of 2000 tokens, but there are 1024 positions"));
}

}  // namespace
}  // namespace ringmaster::nn

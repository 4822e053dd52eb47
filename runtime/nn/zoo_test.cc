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

// The elements of one output's weights, and of one input's.
double FanIn(const Shape& weight) {
  return static_cast<double>(weight.elements()) / static_cast<double>(weight.dim(0));
}
double FanOut(const Shape& weight) {
  return static_cast<double>(weight.elements()) / static_cast<double>(weight.dim(1));
}

// How PyTorch begins a layer that nothing is said of: torch.nn.Linear and Conv2d, weight and bias.
Initialiser OfPyTorch(const Shape& weight) {
  return Initialiser::Uniform(1 / std::sqrt(FanIn(weight)));
}

// How the network's authors begin a parameter of a layer with this weight: torchvision's sources,
// Caffe's prototxt, OpenAI's src/model.py and, of what ends a branch, Radford et al., 2019. Batch
// norm's gain and shift are 1 and 0 in all.
Initialiser PublishedOf(const std::string& network, const std::string& name, const Shape& weight) {
  const bool is_bias = name.ends_with(".bias");
  const bool is_convolution = weight.rank() == 4;
  if (name.ends_with(".gamma")) return Initialiser::Constant(1);
  if (name.ends_with(".beta")) return Initialiser::Constant(0);
  if (network == "alexnet") return OfPyTorch(weight);
  if (network.starts_with("resnet")) {
    if (!is_convolution) return OfPyTorch(weight);
    return Initialiser::Normal(std::sqrt(2.0 / FanOut(weight)));
  }
  if (is_bias) return Initialiser::Constant(0);
  if (network == "densenet-121") {
    if (!is_convolution) return OfPyTorch(weight);
    return Initialiser::Normal(std::sqrt(2.0 / FanIn(weight)));
  }
  if (network == "vgg-16") {
    if (!is_convolution) return Initialiser::Normal(0.01);
    return Initialiser::Normal(std::sqrt(2.0 / FanOut(weight)));
  }
  if (network == "lenet") return Initialiser::Uniform(std::sqrt(3.0 / FanIn(weight)));
  if (name == "wpe.weight") return Initialiser::Normal(0.01);
  const bool ends_a_branch = name.ends_with("down.weight") || name.ends_with("out.weight");
  return Initialiser::Normal(ends_a_branch ? 0.02 / std::sqrt(2.0 * 12) : 0.02);
}

TEST(ZooTest, EveryParameterBeginsAsPublished) {
  for (const char* const network :
       {"lenet", "alexnet", "vgg-16", "resnet-18", "resnet-50", "densenet-121", "gpt-2"}) {
    const std::string name = network;
    const Model model = MustBuild(Named(name), name == "gpt-2"   ? Text(16, 65)
                                               : name == "lenet" ? Images(1, 28, 10)
                                                                 : Images(3, 64, 10));
    for (const Parameter& parameter : model.parameters) {
      Shape weight = parameter.shape;
      if (parameter.name.ends_with(".bias")) {
        weight = ParameterOf(model, parameter.name.substr(0, parameter.name.size() - 4) + "weight")
                     .shape;
      }
      const Initialiser want = PublishedOf(name, parameter.name, weight);
      EXPECT_EQ(parameter.initialiser.kind, want.kind) << network << " " << parameter.name;
      EXPECT_DOUBLE_EQ(parameter.initialiser.value, want.value) << network << " " << parameter.name;
    }
  }
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

#include "runtime/nn/zoo.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn {
namespace {

struct Network {
  std::string_view name;
  ValueId (*build)(ModelBuilder& b, const zoo::NetworkOptions& options, ValueId x);
  std::optional<double> dropout;  // the published rate, where it has such layers
  int64_t blocks = 0;             // as published, where they can be set
  bool reads_text = false;
};

constexpr std::array kNetworks = {
    Network{"lenet", zoo::LeNet},
    Network{"lenet-bn", zoo::LeNetBn, 0.25},
    Network{"alexnet", zoo::AlexNet, 0.5},
    Network{"vgg16", zoo::Vgg16, 0.5},
    Network{"resnet18", zoo::ResNet18},
    Network{"resnet50", zoo::ResNet50},
    Network{"densenet121", zoo::DenseNet121},
    Network{"gpt2", zoo::Gpt2, 0.1, 12, true},
};

absl::Status CheckSettings(const Network& network, const ZooSettings& settings) {
  if (settings.dropout && !network.dropout) {
    return absl::InvalidArgumentError(fmt::format("{} has no dropout: leave it out", network.name));
  }
  if (settings.layers && network.blocks == 0) {
    return absl::InvalidArgumentError(
        fmt::format("the number of {}'s layers is fixed: leave it out", network.name));
  }
  if (settings.layers.value_or(1) < 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} layers: at least 1 is needed", *settings.layers));
  }
  constexpr double kWidest = 16;
  if (!(settings.width > 0 && settings.width <= kWidest)) {
    return absl::InvalidArgumentError(
        fmt::format("width {} does not lie in (0, {}]", settings.width, kWidest));
  }
  return absl::OkStatus();
}

absl::Status CheckData(const Network& network, const BuildOptions& options) {
  const bool is_text = options.sample.dtype == tensor::DType::kI32;
  const int rank = network.reads_text ? 1 : 3;
  if (is_text == network.reads_text && options.sample.shape.rank() == rank) return absl::OkStatus();
  if (network.reads_text) {
    return absl::InvalidArgumentError(
        fmt::format("{} needs text: windows of tokens, the data has {}", network.name,
                    options.sample.ToString()));
  }
  return absl::InvalidArgumentError(fmt::format(
      "{} needs images, [channels, height, width] of f32; the data has {}{}", network.name,
      options.sample.ToString(), is_text ? ": train gpt2 or a transformer on text" : ""));
}

}  // namespace

absl::StatusOr<Model> BuildZoo(const ZooSettings& settings, const BuildOptions& options) {
  const auto network = std::ranges::find(kNetworks, settings.name, &Network::name);
  if (network == kNetworks.end()) {
    std::string known;
    for (const Network& n : kNetworks)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", n.name);
    return absl::InvalidArgumentError(
        fmt::format("no network is called \"{}\"; known: {}", settings.name, known));
  }
  RM_RETURN_IF_ERROR(CheckSettings(*network, settings));
  RM_RETURN_IF_ERROR(CheckData(*network, options));
  ModelBuilder b(options);
  const ValueId inputs = b.Inputs();
  const ValueId logits =
      network->build(b,
                     {.width = settings.width,
                      .dropout = settings.dropout.value_or(network->dropout.value_or(0)),
                      .blocks = settings.layers.value_or(network->blocks)},
                     inputs);
  return std::move(b).Finish(settings.name, inputs, logits);
}

}  // namespace ringmaster::nn

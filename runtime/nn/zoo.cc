#include "runtime/nn/zoo.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/networks.h"
#include "common/status.h"
#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn {
namespace {

using networks::Network;

struct Builder {
  std::string_view name;
  ValueId (*build)(ModelBuilder& b, const zoo::NetworkOptions& options, ValueId x);
};

constexpr std::array kBuilders = {
    Builder{"lenet", zoo::LeNet},
    Builder{"lenet-bn", zoo::LeNetBn},
    Builder{"alexnet", zoo::AlexNet},
    Builder{"vgg-16", zoo::Vgg16},
    Builder{"resnet-18", zoo::ResNet18},
    Builder{"resnet-50", zoo::ResNet50},
    Builder{"densenet-121", zoo::DenseNet121},
    Builder{"gpt-2", zoo::Gpt2},
};
static_assert(std::ranges::equal(kBuilders, networks::kNetworks, {}, &Builder::name,
                                 &Network::name));

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
  if (settings.norm_momentum && !network.batch_norm) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no batch norm: leave its momentum out", network.name));
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
  const int rank = network.reads_text() ? 1 : 3;
  if (is_text == network.reads_text() && options.sample.shape.rank() == rank)
    return absl::OkStatus();
  if (network.reads_text()) {
    return absl::InvalidArgumentError(
        fmt::format("{} needs text: windows of tokens, the data has {}", network.name,
                    options.sample.ToString()));
  }
  return absl::InvalidArgumentError(fmt::format(
      "{} needs images, [channels, height, width] of f32; the data has {}{}", network.name,
      options.sample.ToString(), is_text ? ": train gpt-2 or a transformer on text" : ""));
}

}  // namespace

absl::StatusOr<Model> BuildZoo(const ZooSettings& settings, const BuildOptions& options) {
  const Network* network = networks::Find(settings.name);
  if (network == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("no network is called \"{}\"; known: {}", settings.name, networks::AllNames()));
  }
  RM_RETURN_IF_ERROR(CheckSettings(*network, settings));
  RM_RETURN_IF_ERROR(CheckData(*network, options));
  BuildOptions own = options;
  own.norm_momentum = settings.norm_momentum.value_or(own.norm_momentum);
  ModelBuilder b(own);
  const ValueId inputs = b.Inputs();
  const auto builder = std::ranges::find(kBuilders, network->name, &Builder::name);
  const ValueId logits =
      builder->build(b,
                     {.width = settings.width,
                      .dropout = settings.dropout.value_or(network->dropout.value_or(0)),
                      .blocks = settings.layers.value_or(network->blocks)},
                     inputs);
  return std::move(b).Finish(settings.name, inputs, logits);
}

}  // namespace ringmaster::nn

#include "runtime/nn/zoo.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::nn {
namespace {

namespace config = training::v1alpha1;

// A layer called `name` of which `set` makes the kind.
template <typename Set>
config::Layer Named(std::string name, const Set& set) {
  config::Layer layer;
  layer.name = std::move(name);
  set(layer);
  return layer;
}

// Convolution, batch norm, ReLU and pooling. The norm's beta makes a bias of the convolution
// useless.
void AddConvBlock(config::Sequential& net, int number, int channels) {
  const auto name = [&](const char* kind) { return fmt::format("{}{}", kind, number); };
  net.layers.push_back(Named(name("conv"), [&](config::Layer& layer) {
    layer.conv2d.emplace();
    layer.conv2d->channels = channels;
    layer.conv2d->kernel = 3;
    layer.conv2d->padding = 1;
    layer.conv2d->bias = false;
  }));
  net.layers.push_back(Named(name("bn"), [](config::Layer& l) { l.batch_norm.emplace(); }));
  net.layers.push_back(Named(name("relu"), [](config::Layer& l) { l.relu.emplace(); }));
  net.layers.push_back(Named(name("pool"), [](config::Layer& l) {
    l.max_pool.emplace();
    l.max_pool->kernel = 2;
  }));
}

config::Layer LinearLayer(std::string name, int64_t features) {
  return Named(std::move(name), [&](config::Layer& layer) {
    layer.linear.emplace();
    layer.linear->features = static_cast<int32_t>(features);
  });
}

config::Sequential LenetBn(double dropout, int64_t classes) {
  config::Sequential net;
  AddConvBlock(net, 1, 20);
  AddConvBlock(net, 2, 50);
  net.layers.push_back(Named("flatten", [](config::Layer& l) { l.flatten.emplace(); }));
  net.layers.push_back(LinearLayer("fc1", 240));
  net.layers.push_back(Named("relu3", [](config::Layer& l) { l.relu.emplace(); }));
  net.layers.push_back(Named("dropout", [&](config::Layer& layer) {
    layer.dropout.emplace();
    layer.dropout->rate = dropout;
  }));
  net.layers.push_back(LinearLayer("fc2", classes));
  return net;
}

}  // namespace

absl::StatusOr<config::Sequential> ZooLayers(const config::Zoo& config, int64_t classes) {
  constexpr double kDropout = 0.25;
  if (config.name == "lenet-bn") return LenetBn(config.dropout.value_or(kDropout), classes);
  return absl::InvalidArgumentError(
      fmt::format("no network is called \"{}\"; known: lenet-bn", config.name));
}

}  // namespace ringmaster::nn

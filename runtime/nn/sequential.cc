#include "runtime/nn/sequential.h"

#include <set>
#include <span>

#include <fmt/format.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/graph/ops.h"
#include "runtime/nn/layers.h"

namespace ringmaster::nn {
namespace {

namespace config = training::v1alpha1;

const char* KindOf(const config::Layer& layer) {
  if (layer.conv2d) return "conv2d";
  if (layer.max_pool) return "max-pool";
  if (layer.average_pool) return "average-pool";
  if (layer.adaptive_average_pool) return "adaptive-average-pool";
  if (layer.adaptive_max_pool) return "adaptive-max-pool";
  if (layer.linear) return "linear";
  if (layer.batch_norm) return "batch-norm";
  if (layer.dropout) return "dropout";
  if (layer.relu) return "relu";
  if (layer.gelu) return "gelu";
  if (layer.exact_gelu) return "exact-gelu";
  if (layer.tanh) return "tanh";
  if (layer.sigmoid) return "sigmoid";
  if (layer.silu) return "silu";
  if (layer.log_softmax) return "log-softmax";
  if (layer.flatten) return "flatten";
  return nullptr;
}

// How the weights of a layer followed by `rest` are drawn.
WeightInit InitBefore(std::span<const config::Layer> rest) {
  for (const config::Layer& layer : rest) {
    if (layer.relu || layer.gelu || layer.exact_gelu || layer.silu) return WeightInit::kKaiming;
    if (layer.tanh || layer.sigmoid || layer.conv2d || layer.linear) break;
  }
  return WeightInit::kXavier;
}

// x, or nothing where it is no row of features a sample.
ValueId FeaturesOf(ModelBuilder& b, const std::string& name, ValueId x) {
  if (!x.valid() || b.shape(x).rank() == 2) return x;
  return b.Fail(name, fmt::format("needs [batch, features], got {}; put a flatten before it",
                                  b.shape(x).ToString()));
}

ValueId ApplyLinear(ModelBuilder& b, const std::string& name, const config::Linear& linear,
                    WeightInit init, ValueId x) {
  return Linear(b, name, FeaturesOf(b, name, x), linear.features, linear.bias, init);
}

ValueId ApplyPool(ModelBuilder& b, const std::string& name, const config::Pool& pool, PoolKind kind,
                  ValueId x) {
  return Pool(b, name, x, kind, pool.kernel, pool.stride.value_or(pool.kernel), pool.padding);
}

ValueId ApplyConv2d(ModelBuilder& b, const std::string& name, const config::Conv2d& conv,
                    WeightInit init, ValueId x) {
  return Conv2d(b, name, x,
                {.channels = conv.channels,
                 .kernel = conv.kernel,
                 .stride = conv.stride,
                 .padding = conv.padding,
                 .dilation = conv.dilation,
                 .groups = conv.groups,
                 .bias = conv.bias,
                 .init = init});
}

ValueId ApplyLayer(ModelBuilder& b, const std::string& name, const config::Layer& layer,
                   WeightInit init, ValueId x) {
  if (layer.conv2d) return ApplyConv2d(b, name, *layer.conv2d, init, x);
  if (layer.max_pool) return ApplyPool(b, name, *layer.max_pool, PoolKind::kMax, x);
  if (layer.average_pool) return ApplyPool(b, name, *layer.average_pool, PoolKind::kAverage, x);
  if (layer.adaptive_average_pool)
    return AdaptivePool(b, name, x, layer.adaptive_average_pool->size);
  if (layer.adaptive_max_pool)
    return AdaptivePool(b, name, x, layer.adaptive_max_pool->size, PoolKind::kMax);
  if (layer.linear) return ApplyLinear(b, name, *layer.linear, init, x);
  if (layer.batch_norm) {
    return BatchNorm(b, name, x, layer.batch_norm->epsilon, layer.batch_norm->momentum);
  }
  if (layer.dropout) return Dropout(b, name, x, layer.dropout->rate);
  if (layer.relu) return graph::Relu(b.graph(), x, name);
  if (layer.gelu) return graph::Gelu(b.graph(), x, name);
  if (layer.exact_gelu) return graph::ExactGelu(b.graph(), x, name);
  if (layer.tanh) return graph::Tanh(b.graph(), x, name);
  if (layer.sigmoid) return graph::Sigmoid(b.graph(), x, name);
  if (layer.silu) return graph::Silu(b.graph(), x, name);
  if (layer.log_softmax) return graph::LogSoftmax(b.graph(), FeaturesOf(b, name, x), name);
  return graph::Flatten(b.graph(), x, name);
}

}  // namespace

ValueId ApplySequential(ModelBuilder& b, const config::Sequential& config, ValueId x) {
  const std::span<const config::Layer> layers(config.layers);
  std::set<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const char* kind = KindOf(layers[i]);
    const std::string name = layers[i].name.value_or(fmt::format("{}{}", kind ? kind : "", i + 1));
    if (kind == nullptr) return b.Fail(name, "says no kind of layer");
    if (!names.insert(name).second) return b.Fail(name, "the name is used twice");
    x = ApplyLayer(b, name, layers[i], InitBefore(layers.subspan(i + 1)), x);
  }
  return x;
}

}  // namespace ringmaster::nn

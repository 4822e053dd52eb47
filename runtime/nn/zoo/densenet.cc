#include <array>
#include <cmath>

#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {
namespace {

constexpr std::array<int, 4> kLayers = {6, 12, 24, 16};  // of each block

ValueId Conv(ModelBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t kernel,
             int64_t stride) {
  return Conv2d(b, name, x,
                {.channels = channels,
                 .kernel = kernel,
                 .stride = stride,
                 .padding = kernel / 2,
                 .bias = false,
                 .init = WeightInit::kKaimingNormal});
}

ValueId NormRelu(ModelBuilder& b, const std::string& prefix, const std::string& suffix, ValueId x) {
  return Relu(b, prefix + "relu" + suffix, Norm(b, prefix + "norm" + suffix, x));
}

// Everything so far, and `growth` new channels made from it through a narrow layer.
ValueId DenseLayer(ModelBuilder& b, const std::string& prefix, ValueId x, int64_t growth) {
  constexpr int64_t kBottleneck = 4;
  ValueId y = NormRelu(b, prefix, "1", x);
  y = Conv(b, prefix + "conv1", y, kBottleneck * growth, 1, 1);
  y = Conv(b, prefix + "conv2", NormRelu(b, prefix, "2", y), growth, 3, 1);
  const ValueId parts[] = {x, y};
  return graph::Concat(b.graph(), parts, 1, prefix + "concat");
}

// Half the channels, a quarter of the image.
ValueId Transition(ModelBuilder& b, const std::string& prefix, ValueId x) {
  x = NormRelu(b, prefix, "", x);
  if (!x.valid()) return {};
  x = Conv(b, prefix + "conv", x, b.shape(x).dim(1) / 2, 1, 1);
  return Pool(b, prefix + "pool", x, PoolKind::kAverage, 2, 2, 0);
}

}  // namespace

ValueId DenseNet121(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  constexpr int64_t kGrowth = 32, kStem = 64;
  const int64_t growth = Scaled(kGrowth, options.width);
  x = Conv(b, "features.conv0", x, Scaled(kStem, options.width), 7, 2);
  x = Pool(b, "features.pool0", NormRelu(b, "features.", "0", x), PoolKind::kMax, 3, 2, 1);
  for (size_t block = 0; block < kLayers.size(); ++block) {
    for (int layer = 1; layer <= kLayers[block]; ++layer) {
      const auto prefix = fmt::format("features.denseblock{}.denselayer{}.", block + 1, layer);
      x = DenseLayer(b, prefix, x, growth);
    }
    if (block + 1 < kLayers.size())
      x = Transition(b, fmt::format("features.transition{}.", block + 1), x);
  }
  x = GlobalPool(b, "avgpool", NormRelu(b, "features.", "5", x));
  if (!x.valid()) return {};
  // torchvision draws the head's weights as PyTorch does and sets its biases to 0.
  const Initialiser drawn =
      Initialiser::Uniform(1.0 / std::sqrt(static_cast<double>(b.shape(x).dim(1))));
  return Linear(b, "classifier", x, b.options().classes, true, drawn);
}

}  // namespace ringmaster::nn::zoo

#include <array>

#include <fmt/format.h>

#include "runtime/graph/ops.h"
#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {
namespace {

constexpr int64_t kStem = 64;  // channels of the first convolution
// Residual blocks of each stage; its channels are kStem times 1, 2, 4, 8.
using Stages = std::array<int, 4>;

// A convolution that keeps the image's size but for its stride, and batch norm: "PREFIXconvN" and
// "PREFIXbnN".
ValueId ConvNorm(ModelBuilder& b, const std::string& prefix, int number, ValueId x,
                 int64_t channels, int64_t kernel, int64_t stride) {
  x = Conv2d(b, fmt::format("{}conv{}", prefix, number), x,
             {.channels = channels,
              .kernel = kernel,
              .stride = stride,
              .padding = kernel / 2,
              .bias = false,
              .init = WeightInit::kKaimingNormalOut});
  return Norm(b, fmt::format("{}bn{}", prefix, number), x);
}

// The sum of what a block computed and its input, which is projected where shapes differ.
ValueId Join(ModelBuilder& b, const std::string& prefix, ValueId x, ValueId y, int64_t stride) {
  if (!x.valid() || !y.valid()) return {};
  const int64_t channels = b.shape(y).dim(1);
  if (stride != 1 || b.shape(x).dim(1) != channels) {
    x = Conv2d(b, prefix + "downsample.0", x,
               {.channels = channels,
                .kernel = 1,
                .stride = stride,
                .bias = false,
                .init = WeightInit::kKaimingNormalOut});
    x = Norm(b, prefix + "downsample.1", x);
  }
  return Relu(b, prefix + "relu", graph::Add(b.graph(), y, x, prefix + "add"));
}

ValueId BasicBlock(ModelBuilder& b, const std::string& prefix, ValueId x, int64_t channels,
                   int64_t stride) {
  ValueId y = Relu(b, prefix + "relu1", ConvNorm(b, prefix, 1, x, channels, 3, stride));
  y = ConvNorm(b, prefix, 2, y, channels, 3, 1);
  return Join(b, prefix, x, y, stride);
}

ValueId Bottleneck(ModelBuilder& b, const std::string& prefix, ValueId x, int64_t channels,
                   int64_t stride) {
  constexpr int64_t kExpansion = 4;
  ValueId y = Relu(b, prefix + "relu1", ConvNorm(b, prefix, 1, x, channels, 1, 1));
  y = Relu(b, prefix + "relu2", ConvNorm(b, prefix, 2, y, channels, 3, stride));
  y = ConvNorm(b, prefix, 3, y, kExpansion * channels, 1, 1);
  return Join(b, prefix, x, y, stride);
}

ValueId ResNet(ModelBuilder& b, const NetworkOptions& options, ValueId x, const Stages& stages,
               decltype(BasicBlock)& block) {
  int64_t channels = Scaled(kStem, options.width);
  x = Relu(b, "relu", ConvNorm(b, "", 1, x, channels, 7, 2));
  x = Pool(b, "maxpool", x, PoolKind::kMax, 3, 2, 1);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int i = 0; i < stages[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(b, fmt::format("layer{}.{}.", stage + 1, i), x, channels, stride);
    }
    channels *= 2;
  }
  return Head(b, "fc", GlobalPool(b, "avgpool", x), WeightInit::kFanInUniform);
}

}  // namespace

ValueId ResNet18(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  return ResNet(b, options, x, {2, 2, 2, 2}, BasicBlock);
}

ValueId ResNet50(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  return ResNet(b, options, x, {3, 4, 6, 3}, Bottleneck);
}

}  // namespace ringmaster::nn::zoo

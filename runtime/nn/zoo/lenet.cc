#include <fmt/format.h>

#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {
namespace {

constexpr int64_t kFirst = 20, kSecond = 50;  // channels, as in Caffe's

// Convolution, batch norm, ReLU and pooling. The norm's beta makes a bias of the convolution
// useless.
ValueId NormBlock(ModelBuilder& b, int number, ValueId x, int64_t channels) {
  const auto name = [&](const char* kind) { return fmt::format("{}{}", kind, number); };
  x = Conv2d(b, name("conv"), x, {.channels = channels, .kernel = 3, .padding = 1, .bias = false});
  x = Relu(b, name("relu"), Norm(b, name("bn"), x));
  return Pool(b, name("pool"), x, PoolKind::kMax, 2, 2, 0);
}

}  // namespace

// Two convolutions of 5x5, each with pooling, and two linear layers: Caffe's
// examples/mnist/lenet_train_test.prototxt. Its `xavier` fillers go by the fan-in alone, unlike
// Glorot's.
ValueId LeNet(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  constexpr int64_t kKernel = 5, kHidden = 500;
  constexpr auto kInit = WeightInit::kLeCunUniform;
  for (const auto& [name, channels] : {std::pair("1", kFirst), std::pair("2", kSecond)}) {
    x = Conv2d(b, std::string("conv") + name, x,
               {.channels = Scaled(channels, options.width), .kernel = kKernel, .init = kInit});
    x = Pool(b, std::string("pool") + name, x, PoolKind::kMax, 2, 2, 0);
  }
  x = Flatten(b, "flatten", x);
  x = Linear(b, "ip1", x, Scaled(kHidden, options.width), true, kInit);
  return Head(b, "ip2", Relu(b, "relu1", x), kInit);
}

// With 3x3 kernels, batch norm, and dropout before the last layer.
ValueId LeNetBn(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  constexpr int64_t kHidden = 240;
  x = NormBlock(b, 1, x, Scaled(kFirst, options.width));
  x = NormBlock(b, 2, x, Scaled(kSecond, options.width));
  x = Flatten(b, "flatten", x);
  x = Linear(b, "fc1", x, Scaled(kHidden, options.width), true, WeightInit::kKaiming);
  x = Dropout(b, "dropout", Relu(b, "relu3", x), options.dropout);
  return Head(b, "fc2", x, WeightInit::kXavier);
}

}  // namespace ringmaster::nn::zoo

#include <fmt/format.h>

#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {

ValueId AlexNet(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  constexpr int64_t kSide = 6, kHidden = 4096;
  constexpr auto kInit = WeightInit::kFanInUniform;
  int place = 0;  // in torchvision's list of features
  const auto name = [&] { return fmt::format("features.{}", place++); };
  const auto conv = [&](int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
    x = Conv2d(b, name(), x,
               {.channels = Scaled(channels, options.width),
                .kernel = kernel,
                .stride = stride,
                .padding = padding,
                .init = kInit});
    x = Relu(b, name(), x);
  };
  const auto pool = [&] { x = Pool(b, name(), x, PoolKind::kMax, 3, 2, 0); };
  conv(64, 11, 4, 2);
  pool();
  conv(192, 5, 1, 2);
  pool();
  conv(384, 3, 1, 1);
  conv(256, 3, 1, 1);
  conv(256, 3, 1, 1);
  pool();
  x = Flatten(b, "flatten", AdaptivePool(b, "avgpool", x, kSide));
  const int64_t hidden = Scaled(kHidden, options.width);
  x = Dropout(b, "classifier.0", x, options.dropout);
  x = Relu(b, "classifier.2", Linear(b, "classifier.1", x, hidden, true, kInit));
  x = Dropout(b, "classifier.3", x, options.dropout);
  x = Relu(b, "classifier.5", Linear(b, "classifier.4", x, hidden, true, kInit));
  return Head(b, "classifier.6", x, kInit);
}

}  // namespace ringmaster::nn::zoo

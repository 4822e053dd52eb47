#include <array>

#include <fmt/format.h>

#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {

ValueId Vgg16(ModelBuilder& b, const NetworkOptions& options, ValueId x) {
  struct Stage {
    int convolutions;
    int64_t channels;
  };
  constexpr std::array kStages = {Stage{2, 64}, Stage{2, 128}, Stage{3, 256}, Stage{3, 512},
                                  Stage{3, 512}};
  constexpr int64_t kSide = 7, kHidden = 4096;
  int place = 0;  // in torchvision's list of features
  const auto name = [&] { return fmt::format("features.{}", place++); };
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.convolutions; ++i) {
      x = Conv2d(b, name(), x,
                 {.channels = Scaled(stage.channels, options.width),
                  .kernel = 3,
                  .padding = 1,
                  .init = WeightInit::kKaimingNormalOut});
      x = Relu(b, name(), x);
    }
    x = Pool(b, name(), x, PoolKind::kMax, 2, 2, 0);
  }
  x = Flatten(b, "flatten", AdaptivePool(b, "avgpool", x, kSide));
  const int64_t hidden = Scaled(kHidden, options.width);
  constexpr auto kInit = WeightInit::kSmallNormal;
  x = Relu(b, "classifier.1", Linear(b, "classifier.0", x, hidden, true, kInit));
  x = Dropout(b, "classifier.2", x, options.dropout);
  x = Relu(b, "classifier.4", Linear(b, "classifier.3", x, hidden, true, kInit));
  x = Dropout(b, "classifier.5", x, options.dropout);
  return Head(b, "classifier.6", x, kInit);
}

}  // namespace ringmaster::nn::zoo

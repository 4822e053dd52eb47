#include "runtime/nn/zoo/networks.h"

#include <algorithm>
#include <cmath>

#include "runtime/graph/ops.h"

namespace ringmaster::nn::zoo {

int64_t Scaled(int64_t channels, double width) {
  constexpr int64_t kMultiple = 8;
  if (width == 1) return channels;
  const double multiples = static_cast<double>(channels) * width / static_cast<double>(kMultiple);
  return std::max<int64_t>(1, std::llround(multiples)) * kMultiple;
}

ValueId Norm(ModelBuilder& b, const std::string& name, ValueId x) {
  constexpr double kEpsilon = 1e-5;
  return BatchNorm(b, name, x, kEpsilon, b.options().norm_momentum);
}

ValueId Relu(ModelBuilder& b, const std::string& name, ValueId x) {
  return graph::Relu(b.graph(), x, name);
}

ValueId GlobalPool(ModelBuilder& b, const std::string& name, ValueId x) {
  return Flatten(b, name + ".flatten", AdaptivePool(b, name, x, 1));
}

ValueId Flatten(ModelBuilder& b, const std::string& name, ValueId x) {
  return graph::Flatten(b.graph(), x, name);
}

ValueId Head(ModelBuilder& b, const std::string& name, ValueId x, WeightInit init) {
  return Linear(b, name, x, b.options().classes, true, init);
}

}  // namespace ringmaster::nn::zoo

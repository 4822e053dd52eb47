#include "runtime/nn/layers.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/graph/ops.h"

namespace ringmaster::nn {
namespace {

Initialiser WeightInitialiser(WeightInit init, int64_t fan_in, int64_t fan_out) {
  return init == WeightInit::kKaiming ? Kaiming(fan_in) : Xavier(fan_in, fan_out);
}

// Whether `x` has the rank; else the layer's failure is recorded. False also after an earlier
// error.
bool HasRank(ModelBuilder& b, const std::string& name, ValueId x, int rank, const char* axes) {
  if (!x.valid() || !b.graph().status().ok()) return false;
  const Shape shape = b.shape(x);
  if (shape.rank() == rank) return true;
  b.Fail(name, fmt::format("needs {}, got {}", axes, shape.ToString()));
  return false;
}

}  // namespace

Initialiser OfDeviation(double deviation) {
  return Initialiser::Uniform(deviation * std::sqrt(3.0));
}

Initialiser Kaiming(int64_t fan_in) {
  return OfDeviation(std::sqrt(2.0 / static_cast<double>(fan_in)));
}

Initialiser Xavier(int64_t fan_in, int64_t fan_out) {
  return OfDeviation(std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

ValueId Conv2d(ModelBuilder& b, const std::string& name, ValueId x, const Conv2dOptions& options) {
  if (!HasRank(b, name, x, 4, "[batch, channels, height, width]")) return {};
  const int64_t inputs = b.shape(x).dim(1);
  const int64_t window = options.kernel * options.kernel;
  const ValueId weight =
      b.Parameter(name + ".weight", {options.channels, inputs, options.kernel, options.kernel},
                  WeightInitialiser(options.init, inputs * window, options.channels * window));
  const ValueId bias =
      options.bias ? b.Parameter(name + ".bias", {options.channels}, Initialiser::Constant(0))
                   : ValueId{};
  return graph::Conv2d(
      b.graph(), x, weight, bias,
      {.stride = {options.stride, options.stride}, .padding = {options.padding, options.padding}},
      name);
}

ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features, bool bias,
               Initialiser weight) {
  if (!x.valid() || !b.graph().status().ok()) return {};
  const ValueId w = b.Parameter(name + ".weight", {features, b.shape(x).dim(-1)}, weight);
  const ValueId offset =
      bias ? b.Parameter(name + ".bias", {features}, Initialiser::Constant(0)) : ValueId{};
  return graph::Linear(b.graph(), x, w, offset, name);
}

ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features, bool bias,
               WeightInit init) {
  if (!x.valid() || !b.graph().status().ok()) return {};
  return Linear(b, name, x, features, bias, WeightInitialiser(init, b.shape(x).dim(-1), features));
}

ValueId BatchNorm(ModelBuilder& b, const std::string& name, ValueId x, double epsilon,
                  double momentum) {
  if (!x.valid() || !b.graph().status().ok()) return {};
  if (b.shape(x).rank() < 2) return b.Fail(name, "needs [batch, channels, ...]");
  const Shape channels({b.shape(x).dim(1)});
  const ValueId gamma = b.Parameter(name + ".gamma", channels, Initialiser::Constant(1));
  const ValueId beta = b.Parameter(name + ".beta", channels, Initialiser::Constant(0));
  graph::BatchNormResult own;
  if (b.training()) own = graph::BatchNorm(b.graph(), x, gamma, beta, epsilon, name);
  const ValueId mean = b.RunningStatistic(name + ".running_mean", channels, 0, momentum, own.mean);
  const ValueId variance =
      b.RunningStatistic(name + ".running_variance", channels, 1, momentum, own.variance);
  if (b.training()) return own.y;
  return graph::BatchNormInference(b.graph(), x, gamma, beta, mean, variance, epsilon, name);
}

ValueId LayerNorm(ModelBuilder& b, const std::string& name, ValueId x) {
  constexpr double kEpsilon = 1e-5;
  if (!x.valid() || !b.graph().status().ok()) return {};
  const Shape features({b.shape(x).dim(-1)});
  const ValueId gamma = b.Parameter(name + ".gamma", features, Initialiser::Constant(1));
  const ValueId beta = b.Parameter(name + ".beta", features, Initialiser::Constant(0));
  return graph::LayerNorm(b.graph(), x, gamma, beta, kEpsilon, name);
}

ValueId Dropout(ModelBuilder& b, const std::string& name, ValueId x, double rate) {
  if (!b.training() || rate == 0) return x;
  return graph::Dropout(b.graph(), x, rate, name);
}

ValueId Pool(ModelBuilder& b, const std::string& name, ValueId x, PoolKind kind, int64_t kernel,
             int64_t stride, int64_t padding) {
  if (!HasRank(b, name, x, 4, "[batch, channels, height, width]")) return {};
  const graph::WindowOptions options{.stride = {stride, stride}, .padding = {padding, padding}};
  const auto pool = kind == PoolKind::kMax ? graph::MaxPool2d : graph::AvgPool2d;
  return pool(b.graph(), x, {kernel, kernel}, options, name);
}

}  // namespace ringmaster::nn

#include "runtime/nn/layers.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "runtime/graph/ops.h"

namespace ringmaster::nn {
namespace {

Initialiser WeightInitialiser(WeightInit init, int64_t fan_in, int64_t fan_out) {
  constexpr double kSmall = 0.01;
  const auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  switch (init) {
    case WeightInit::kKaiming:
      return Kaiming(fan_in);
    case WeightInit::kXavier:
      return Xavier(fan_in, fan_out);
    case WeightInit::kLeCunUniform:
      return OfDeviation(1.0 / std::sqrt(in));
    case WeightInit::kKaimingNormal:
      return Initialiser::Normal(std::sqrt(2.0 / in));
    case WeightInit::kKaimingNormalOut:
      return Initialiser::Normal(std::sqrt(2.0 / out));
    case WeightInit::kFanInUniform:
      return Initialiser::Uniform(1.0 / std::sqrt(in));
    case WeightInit::kSmallNormal:
      return Initialiser::Normal(kSmall);
  }
  return Initialiser::Constant(0);
}

Initialiser BiasInitialiser(WeightInit init, int64_t fan_in) {
  if (init != WeightInit::kFanInUniform) return Initialiser::Constant(0);
  return Initialiser::Uniform(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

// Whether `x` has a last axis; else the layer's failure is recorded. False also after an earlier
// error.
bool HasFeatures(ModelBuilder& b, const std::string& name, ValueId x) {
  if (!x.valid() || !b.graph().status().ok()) return false;
  if (b.shape(x).rank() > 0) return true;
  b.Fail(name, "needs [..., features], got a scalar");
  return false;
}

// y = x W' + b with parameters drawn as said.
ValueId DrawnLinear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features,
                    Initialiser weight, std::optional<Initialiser> bias) {
  if (!HasFeatures(b, name, x)) return {};
  const ValueId w = b.Parameter(name + ".weight", {features, b.shape(x).dim(-1)}, weight);
  const ValueId offset = bias ? b.Parameter(name + ".bias", {features}, *bias) : ValueId{};
  return graph::Linear(b.graph(), x, w, offset, name);
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
  const int64_t channels = b.shape(x).dim(1);
  if (options.groups < 1 || channels % options.groups != 0 ||
      options.channels % options.groups != 0) {
    return b.Fail(name, fmt::format("{} input and {} output channels do not divide into {} groups",
                                    channels, options.channels, options.groups));
  }
  const int64_t inputs = channels / options.groups;
  const int64_t window = options.kernel * options.kernel;
  const ValueId weight =
      b.Parameter(name + ".weight", {options.channels, inputs, options.kernel, options.kernel},
                  WeightInitialiser(options.init, inputs * window, options.channels * window));
  const ValueId bias = options.bias ? b.Parameter(name + ".bias", {options.channels},
                                                  BiasInitialiser(options.init, inputs * window))
                                    : ValueId{};
  return graph::Conv2d(b.graph(), x, weight, bias,
                       {.stride = {options.stride, options.stride},
                        .padding = {options.padding, options.padding},
                        .dilation = {options.dilation, options.dilation},
                        .groups = options.groups},
                       name);
}

ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features, bool bias,
               Initialiser weight) {
  return DrawnLinear(b, name, x, features, weight,
                     bias ? std::optional(Initialiser::Constant(0)) : std::nullopt);
}

ValueId Linear(ModelBuilder& b, const std::string& name, ValueId x, int64_t features, bool bias,
               WeightInit init) {
  if (!HasFeatures(b, name, x)) return {};
  const int64_t inputs = b.shape(x).dim(-1);
  return DrawnLinear(b, name, x, features, WeightInitialiser(init, inputs, features),
                     bias ? std::optional(BiasInitialiser(init, inputs)) : std::nullopt);
}

ValueId BatchNorm(ModelBuilder& b, const std::string& name, ValueId x, double epsilon,
                  double momentum) {
  if (!x.valid() || !b.graph().status().ok()) return {};
  if (b.shape(x).rank() < 2) return b.Fail(name, "needs [batch, channels, ...]");
  const Shape channels({b.shape(x).dim(1)});
  const ValueId gamma = b.Parameter(name + ".gamma", channels, Initialiser::Constant(1));
  const ValueId beta = b.Parameter(name + ".beta", channels, Initialiser::Constant(0));
  graph::BatchNormResult own;
  if (b.training()) {
    const auto norm =
        b.options().synchronised_batch_norm ? graph::SynchronisedBatchNorm : graph::BatchNorm;
    own = norm(b.graph(), x, gamma, beta, epsilon, name);
  }
  const ValueId mean = b.RunningStatistic(name + ".running_mean", channels, 0, momentum, own.mean);
  const ValueId variance =
      b.RunningStatistic(name + ".running_variance", channels, 1, momentum, own.variance);
  if (b.training()) return own.y;
  return graph::BatchNormInference(b.graph(), x, gamma, beta, mean, variance, epsilon, name);
}

ValueId LayerNorm(ModelBuilder& b, const std::string& name, ValueId x) {
  constexpr double kEpsilon = 1e-5;
  if (!HasFeatures(b, name, x)) return {};
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
  const graph::PoolOptions options{.stride = {stride, stride}, .padding = {padding, padding}};
  const auto pool = kind == PoolKind::kMax ? graph::MaxPool2d : graph::AvgPool2d;
  return pool(b.graph(), x, {kernel, kernel}, options, name);
}

ValueId AdaptivePool(ModelBuilder& b, const std::string& name, ValueId x, int64_t size,
                     PoolKind kind) {
  if (!HasRank(b, name, x, 4, "[batch, channels, height, width]")) return {};
  const auto pool = kind == PoolKind::kMax ? graph::AdaptiveMaxPool2d : graph::AdaptiveAvgPool2d;
  return pool(b.graph(), x, {size, size}, name);
}

}  // namespace ringmaster::nn

#include "runtime/nn/transformer.h"

#include <cmath>

#include <fmt/format.h>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/graph/ops.h"
#include "runtime/nn/layers.h"

namespace ringmaster::nn {
namespace {

using training::v1alpha1::Transformer;

constexpr double kDeviation = 0.02;
constexpr int64_t kExpansion = 4;  // of the perceptron's hidden layer

// x + Dropout(Linear(y)): how a part of a block returns to the residual stream.
ValueId Return(ModelBuilder& b, const std::string& name, const DecoderOptions& config, ValueId x,
               ValueId y) {
  const double deviation = kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  y = Linear(b, name, y, config.width, true, config.draw(deviation));
  return graph::Add(b.graph(), x, Dropout(b, name + ".dropout", y, config.dropout), name + ".add");
}

ValueId Block(ModelBuilder& b, const std::string& name, const DecoderOptions& config, ValueId x) {
  const int64_t width = config.width;
  ValueId y = LayerNorm(b, name + ".norm1", x);
  y = Linear(b, name + ".attention.qkv", y, 3 * width, true, config.draw(kDeviation));
  y = graph::CausalAttention(b.graph(), y, config.heads, name + ".attention");
  x = Return(b, name + ".attention.out", config, x, y);
  y = LayerNorm(b, name + ".norm2", x);
  y = Linear(b, name + ".mlp.up", y, kExpansion * width, true, config.draw(kDeviation));
  y = graph::Gelu(b.graph(), y, name + ".mlp.gelu");
  return Return(b, name + ".mlp.down", config, x, y);
}

}  // namespace

ValueId DecoderBlocks(ModelBuilder& b, const DecoderOptions& options, ValueId x) {
  for (int64_t i = 1; i <= options.layers; ++i) x = Block(b, fmt::format("block{}", i), options, x);
  return LayerNorm(b, "norm", x);
}

ValueId ApplyTransformer(ModelBuilder& b, const Transformer& config, ValueId tokens) {
  const int64_t width = config.width;
  if (config.heads < 1 || width % config.heads != 0) {
    return b.Fail("transformer",
                  fmt::format("width {} is no multiple of heads {}", width, config.heads));
  }
  if (b.options().sample.dtype != tensor::DType::kI32 || b.shape(tokens).rank() != 2) {
    return b.Fail("transformer", fmt::format("needs text: windows of tokens, got samples of {}",
                                             b.options().sample.ToString()));
  }
  const ValueId table =
      b.Parameter("tokens.weight", {b.options().classes, width}, OfDeviation(kDeviation));
  const ValueId positions =
      b.Parameter("positions.weight", {b.shape(tokens).dim(1), width}, OfDeviation(kDeviation));
  ValueId x = graph::Embedding(b.graph(), table, tokens, "tokens");
  x = graph::Add(b.graph(), x, positions, "positions");
  x = Dropout(b, "dropout", x, config.dropout);
  x = DecoderBlocks(b,
                    {.layers = config.layers,
                     .heads = config.heads,
                     .width = width,
                     .dropout = config.dropout,
                     .draw = OfDeviation},
                    x);
  return Linear(b, "head", x, b.options().classes, false, OfDeviation(kDeviation));
}

}  // namespace ringmaster::nn

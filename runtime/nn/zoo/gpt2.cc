#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/networks.h"
#include "runtime/graph/ops.h"
#include "runtime/nn/transformer.h"
#include "runtime/nn/zoo/networks.h"

namespace ringmaster::nn::zoo {

// A position table of 1,024 places, of which a shorter window uses the first, and a head that is
// the token table itself. The tables' deviations are those of OpenAI's src/model.py, the blocks'
// those of Radford et al., 2019 (transformer.h); nothing drops attention's weights.
ValueId Gpt2(ModelBuilder& b, const NetworkOptions& options, ValueId tokens) {
  constexpr int64_t kPositions = networks::Find("gpt-2")->longest_window;
  constexpr int64_t kHeads = 12, kHeadWidth = 64;
  constexpr double kTokenDeviation = 0.02, kPositionDeviation = 0.01;
  const int64_t time = b.shape(tokens).dim(1);
  if (time > kPositions) {
    return b.Fail(
        "wpe", fmt::format("windows of {} tokens, but there are {} positions", time, kPositions));
  }
  const int64_t heads =
      std::max<int64_t>(1, std::llround(static_cast<double>(kHeads) * options.width));
  const int64_t width = heads * kHeadWidth;
  const ValueId table =
      b.Parameter("wte.weight", {b.options().classes, width}, Initialiser::Normal(kTokenDeviation));
  ValueId positions =
      b.Parameter("wpe.weight", {kPositions, width}, Initialiser::Normal(kPositionDeviation));
  if (time < kPositions) {
    const int64_t begin[] = {0, 0};
    positions = graph::Slice(b.graph(), positions, begin, {time, width}, "positions");
  }
  ValueId x = graph::Embedding(b.graph(), table, tokens, "wte");
  x = graph::Add(b.graph(), x, positions, "wpe");
  x = Dropout(b, "drop", x, options.dropout);
  x = DecoderBlocks(b,
                    {.layers = options.blocks,
                     .heads = heads,
                     .width = width,
                     .dropout = options.dropout,
                     .draw = Initialiser::Normal},
                    x);
  return graph::Linear(b.graph(), x, table, ValueId{}, "head");
}

}  // namespace ringmaster::nn::zoo

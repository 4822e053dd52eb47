// Prints, as JSON lines, how the allreduce's algorithms grow with the number of ranks: what
// docs/images/collectives_growth.py draws.
#include <fmt/format.h>

#include "runtime/collectives/testing/growth.h"

int main() {
  using namespace ringmaster::collectives;
  for (const size_t bytes : {size_t{1} << 10, size_t{1} << 20}) {
    for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
      for (int world = 2; world <= 64; world *= 2) {
        const Shape shape{world, algorithm == Algorithm::kTwoLevel ? world / 2 : world};
        if (algorithm == Algorithm::kTwoLevel && world < 4) continue;
        const testing::Growth growth = testing::MeasureGrowth(algorithm, shape, bytes);
        fmt::print(
            R"({{"bytes":{},"algorithm":"{}","ranks":{},"predicted":{},"simulated":{},"peers":{},"scratch":{}}})"
            "\n",
            bytes, NameOf(algorithm), world, growth.predicted, growth.simulated, growth.peers,
            growth.scratch_bytes);
      }
    }
  }
}

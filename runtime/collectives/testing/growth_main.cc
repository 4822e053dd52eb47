// Prints, as JSON lines, how the algorithms of the allreduce and of the ordered sum grow with the
// number of ranks: what docs/images/collectives_growth.py draws.
#include <fmt/format.h>

#include "runtime/collectives/testing/growth.h"

namespace {

using namespace ringmaster::collectives;

void Print(OperationKind kind, Algorithm algorithm, size_t bytes) {
  for (int world = 2; world <= 64; world *= 2) {
    const Shape shape{world, algorithm == Algorithm::kTwoLevel ? world / 2 : world};
    if (algorithm == Algorithm::kTwoLevel && world < 4) continue;
    const testing::Growth growth = testing::MeasureGrowth(kind, algorithm, shape, bytes);
    fmt::print(
        R"({{"bytes":{},"ordered":{},"algorithm":"{}","ranks":{},"predicted":{},"simulated":{},"peers":{},"scratch":{}}})"
        "\n",
        bytes, kind == OperationKind::kOrderedSum, NameOf(algorithm), world, growth.predicted,
        growth.simulated, growth.peers, growth.scratch_bytes);
  }
}

}  // namespace

int main() {
  for (const size_t bytes : {size_t{1} << 10, size_t{1} << 20}) {
    for (const OperationKind kind : {OperationKind::kAllreduce, OperationKind::kOrderedSum}) {
      for (const Algorithm algorithm : AlgorithmsOf(kind)) Print(kind, algorithm, bytes);
    }
  }
}

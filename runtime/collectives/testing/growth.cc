#include "runtime/collectives/testing/growth.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/algorithms/contribution.h"
#include "runtime/collectives/algorithms/direct_sum.h"
#include "runtime/collectives/algorithms/halving_sum.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/selector.h"
#include "runtime/collectives/testing/simulated_network.h"

namespace {

// What a thread has from operator new now, and the most that it had.
thread_local int64_t current_bytes = 0;
thread_local int64_t peak_bytes = 0;

}  // namespace

void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  current_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  peak_bytes = std::max(peak_bytes, current_bytes);
  return memory;
}
void operator delete(void* memory) noexcept {
  current_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace ringmaster::collectives::testing {
namespace {

constexpr size_t kSegmentBytes = 256 * 1024;

// Who has which shards the ranks know from a sum before.
Ownership OneShardEach(int world) {
  Ownership owners(world, world);
  for (int rank = 0; rank < world; ++rank) owners.Give(rank, rank);
  return owners;
}

absl::Status SumInOrder(Transport& transport, Algorithm algorithm, Ownership& owners,
                        std::span<const float> in, std::span<float> out) {
  const std::span<const float> sums[] = {in};
  const Contribution<float> mine{SumOrder::kTree, owners, true, sums};
  // They hold what the operation writes to until it has ended.
  HalvingSum<float> halving;
  DirectSum<float> direct;
  RM_RETURN_IF_ERROR(
      algorithm == Algorithm::kHalvingDoubling
          ? halving.Run(transport, mine, out, kSegmentBytes)
          : direct.Run(transport, mine, out, kSegmentBytes,
                       algorithm == Algorithm::kOneShot ? DirectSteps::kOne : DirectSteps::kTwo));
  return transport.Finish();
}

}  // namespace

NodeMap MapOf(Shape shape) {
  std::vector<std::string> machines;
  for (int rank = 0; rank < shape.world; ++rank)
    machines.push_back(fmt::format("node {}", rank / shape.per_node()));
  return NodeMap(machines);
}

Growth MeasureGrowth(OperationKind kind, Algorithm algorithm, Shape shape, size_t bytes) {
  const CostModel model;
  const Selector selector(MapOf(shape), model, kSegmentBytes, algorithm);
  const Method method = selector.For(kind, bytes);
  const size_t count = bytes / sizeof(float);
  const float want = static_cast<float>(shape.world) * static_cast<float>(shape.world + 1) / 2;
  SimulatedNetwork network(selector.nodes(), model);
  std::atomic<size_t> scratch = 0;
  Growth growth;
  growth.simulated = network.Run([&](Transport& transport) -> absl::Status {
    const std::vector<float> in(count, static_cast<float>(transport.rank() + 1));
    std::vector<float> out(count);
    Ownership owners = OneShardEach(shape.world);
    current_bytes = peak_bytes = 0;
    if (kind == OperationKind::kOrderedSum) {
      RM_RETURN_IF_ERROR(SumInOrder(transport, method.algorithm, owners, in, out));
    } else {
      RM_RETURN_IF_ERROR(Allreduce(transport, method, Reduction::kSum, in, out));
      RM_RETURN_IF_ERROR(transport.Finish());
    }
    scratch = std::max(scratch.load(), static_cast<size_t>(peak_bytes));  // one thread at a time
    if (std::count(out.begin(), out.end(), want) != static_cast<ptrdiff_t>(count))
      return absl::DataLossError("a wrong sum");
    return absl::OkStatus();
  });
  growth.predicted = Predict(model, kind, algorithm, bytes, shape, kSegmentBytes);
  growth.peers = network.most_peers();
  growth.scratch_bytes = scratch;
  return growth;
}

}  // namespace ringmaster::collectives::testing

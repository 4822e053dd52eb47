#include "runtime/graph/arena.h"

#include <algorithm>
#include <numeric>

#include "runtime/device/memory.h"

namespace ringmaster::graph {
namespace {

struct Placed {
  size_t begin, end;
  int32_t first, last;
};

bool Overlap(const Placed& placed, const Lifetime& life) {
  return placed.first <= life.last && life.first <= placed.last;
}

// The lowest offset with `bytes` free beside those of `placed` (sorted by begin) that live at the
// same time.
size_t LowestGap(std::span<const Placed> placed, const Lifetime& life, size_t bytes) {
  size_t offset = 0;
  for (const Placed& p : placed) {
    if (!Overlap(p, life)) continue;
    if (p.begin >= offset + bytes) break;
    offset = std::max(offset, p.end);
  }
  return offset;
}

ArenaPlan PlanWithoutReuse(std::span<const Lifetime> lifetimes) {
  ArenaPlan plan;
  for (const Lifetime& life : lifetimes) {
    plan.offsets.push_back(plan.bytes);
    plan.bytes += device::AlignUp(life.bytes);
  }
  return plan;
}

}  // namespace

ArenaPlan PlanArena(std::span<const Lifetime> lifetimes, bool reuse) {
  if (!reuse) return PlanWithoutReuse(lifetimes);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  ArenaPlan plan{.offsets = std::vector<size_t>(lifetimes.size())};
  std::vector<Placed> placed;
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    const size_t bytes = device::AlignUp(life.bytes);
    const size_t offset = LowestGap(placed, life, bytes);
    const Placed entry{offset, offset + bytes, life.first, life.last};
    placed.insert(std::ranges::upper_bound(placed, entry.begin, {}, &Placed::begin), entry);
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, entry.end);
  }
  return plan;
}

}  // namespace ringmaster::graph

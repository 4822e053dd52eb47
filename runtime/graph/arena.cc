#include "runtime/graph/arena.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "runtime/device/memory.h"

namespace ringmaster::graph {
namespace {

// Where values lie in one piece of memory.
class Space {
 public:
  // The lowest offset with `bytes` free beside those that live at the same time.
  size_t LowestGap(const Lifetime& life, size_t bytes) const {
    size_t offset = 0;
    for (const Placed& p : placed_) {
      if (p.last < life.first || life.last < p.first) continue;
      if (p.begin >= offset + bytes) break;
      offset = std::max(offset, p.end);
    }
    return offset;
  }

  void Place(size_t offset, size_t bytes, const Lifetime& life) {
    const Placed entry{offset, offset + bytes, life.first, life.last};
    placed_.insert(std::ranges::upper_bound(placed_, entry.begin, {}, &Placed::begin), entry);
  }

 private:
  struct Placed {
    size_t begin, end;
    int32_t first, last;
  };
  std::vector<Placed> placed_;  // by begin
};

// A block as a space in which offsets are counted from its end.
class BlockSpace {
 public:
  explicit BlockSpace(const Block& block) : bytes_(block.bytes) {
    for (const Block::Tenant& tenant : block.tenants) {
      const size_t bytes = device::AlignUp(tenant.life.bytes);
      from_end_.Place(bytes_ - tenant.offset - bytes, bytes, tenant.life);
    }
  }

  // The offset at which the value has been placed; nothing where there is no room, or no need.
  std::optional<size_t> TryPlace(const Lifetime& life, size_t bytes) {
    const size_t gap = from_end_.LowestGap(life, bytes);
    if (bytes == 0 || gap + bytes > bytes_) return std::nullopt;
    from_end_.Place(gap, bytes, life);
    return bytes_ - gap - bytes;
  }

 private:
  const size_t bytes_;
  Space from_end_;
};

ArenaPlan PlanWithoutReuse(std::span<const Lifetime> lifetimes) {
  ArenaPlan plan{.in_block = std::vector<bool>(lifetimes.size(), false)};
  for (const Lifetime& life : lifetimes) {
    plan.offsets.push_back(plan.bytes);
    plan.bytes += device::AlignUp(life.bytes);
  }
  return plan;
}

}  // namespace

ArenaPlan PlanArena(std::span<const Lifetime> lifetimes, bool reuse, const Block& block) {
  if (!reuse) return PlanWithoutReuse(lifetimes);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  ArenaPlan plan{.offsets = std::vector<size_t>(lifetimes.size()),
                 .in_block = std::vector<bool>(lifetimes.size(), false)};
  BlockSpace beside(block);
  Space arena;
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    const size_t bytes = device::AlignUp(life.bytes);
    if (const auto offset = beside.TryPlace(life, bytes)) {
      plan.in_block[i] = true;
      plan.offsets[i] = *offset;
      continue;
    }
    plan.offsets[i] = arena.LowestGap(life, bytes);
    arena.Place(plan.offsets[i], bytes, life);
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + bytes);
  }
  return plan;
}

}  // namespace ringmaster::graph

// Plans where in an arena values lie, so that values with disjoint lives share memory.
//
// Greedy by size, as in "Efficient memory management for deep neural net inference" (Pisarchyk and
// Lee, 2020): the largest value first, each at the lowest offset that is free during its whole
// life. Where there is memory anyway that is not always in use, a value lies there if it can. Pure
// functions.
#ifndef RINGMASTER_RUNTIME_GRAPH_ARENA_H_
#define RINGMASTER_RUNTIME_GRAPH_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::graph {

// A value that is needed from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

// Memory that there is beside the arena, and what has its place there already. It is filled from
// its end: a backward pass makes the gradients of the last parameters first, so that what dies
// early leaves to what dies late the memory that is needed late.
struct Block {
  struct Tenant {
    size_t offset = 0;  // a multiple of device::kAlignment, as the block's bytes
    Lifetime life;
  };
  size_t bytes = 0;
  std::vector<Tenant> tenants;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  // one per lifetime, multiples of device::kAlignment
  std::vector<bool> in_block;   // one per lifetime: whether its offset is the block's
  size_t bytes = 0;             // of the whole arena
};

// With `reuse` off every value gets memory of its own, in the arena.
ArenaPlan PlanArena(std::span<const Lifetime> lifetimes, bool reuse = true,
                    const Block& block = {});

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_ARENA_H_

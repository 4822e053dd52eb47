// Plans where in one block of memory values lie, so that values with disjoint lives share it.
//
// Greedy by size, as in "Efficient memory management for deep neural net inference" (Pisarchyk and
// Lee, 2020): the largest value first, each at the lowest offset that is free during its whole
// life. Pure functions.
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

struct ArenaPlan {
  std::vector<size_t> offsets;  // one per lifetime, multiples of device::kAlignment
  size_t bytes = 0;             // of the whole arena
};

// With `reuse` off every value gets memory of its own.
ArenaPlan PlanArena(std::span<const Lifetime> lifetimes, bool reuse = true);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_ARENA_H_

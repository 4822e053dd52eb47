// Where a graph's time goes: what Executor::SetProfile collects.
#ifndef RINGMASTER_RUNTIME_GRAPH_PROFILE_H_
#define RINGMASTER_RUNTIME_GRAPH_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ringmaster::graph {

// One primitive; of several executors, what is the same node with the same kernel in each.
struct OpProfile {
  std::string node;            // its name in the graph
  std::string op;              // "conv2d_grad_weight"
  std::string implementation;  // as in Executor::ImplementationNames
  bool backward = false;       // whether it runs in the backward pass
  int64_t calls = 0;
  std::chrono::nanoseconds time{};  // of all calls
};

// Sums over `runs` runs, in the order in which the primitives run; what only a later one of several
// executors has comes last. A value; not thread-safe.
struct Profile {
  using Time = std::chrono::steady_clock::time_point;

  int64_t runs = 0;
  std::vector<OpProfile> ops;
  // Where there is one, told of each call when it has ended, on the run's thread.
  std::function<void(const OpProfile& op, Time begin, Time end)> listener = {};
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PROFILE_H_

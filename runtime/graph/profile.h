// Where a graph's time goes: what Executor::SetProfile collects.
#ifndef RINGMASTER_RUNTIME_GRAPH_PROFILE_H_
#define RINGMASTER_RUNTIME_GRAPH_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::graph {

// One primitive of an executor.
struct OpProfile {
  std::string node;            // its name in the graph
  std::string op;              // "conv2d_grad_weight"
  std::string implementation;  // as in Executor::ImplementationNames
  std::chrono::nanoseconds time{};
  std::chrono::steady_clock::time_point begin{};  // of the last run
};

// Sums over `runs` runs, in the order in which the primitives run. A value; not thread-safe.
struct Profile {
  int64_t runs = 0;
  std::vector<OpProfile> ops;
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PROFILE_H_

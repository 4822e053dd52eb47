// What a graph will take when it is compiled, without taking it.
#ifndef RINGMASTER_RUNTIME_GRAPH_REQUIREMENTS_H_
#define RINGMASTER_RUNTIME_GRAPH_REQUIREMENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/executor.h"

namespace ringmaster::graph {

struct Requirements {
  size_t arena_bytes = 0;   // as Executor::arena_bytes
  size_t output_bytes = 0;  // of outputs beside the block, unless the caller binds them
  // The value that takes most of it: its node's name, its type and shape, and its bytes.
  std::string largest;
  size_t largest_bytes = 0;
  // Of images that steps copy from one layout into another beside what they are for.
  size_t reordered_bytes = 0;
  std::vector<std::string> implementation_names;  // as Executor::ImplementationNames
};

// Picks kernels and plans memory as Executor::Compile does with the same options, and allocates
// none of it. Fixes the thread count, and fails, as Compile does.
absl::StatusOr<Requirements> RequirementsOf(const Graph& graph, const CompileOptions& options);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_REQUIREMENTS_H_

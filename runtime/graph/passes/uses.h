// Uses: who reads the values of a graph, as far as an output depends on it. Internal to graph/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_USES_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_USES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace ringmaster::graph {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  // Whether an output depends on the node.
  bool IsLive(int32_t node) const { return live_[static_cast<size_t>(node)]; }
  // Calls call(node) for each of these, in order.
  template <typename Call>
  void ForEachLive(const Call& call) const {
    for (int32_t node = 0; node < static_cast<int32_t>(live_.size()); ++node) {
      if (IsLive(node)) call(node);
    }
  }
  // The live nodes that read the value, in order; a node that reads it twice is there twice.
  std::span<const int32_t> ReadersOf(ValueId value) const {
    return readers_[static_cast<size_t>(value.index)];
  }
  // Whether this node reads the value, once, and nobody else does; it is no output either.
  bool IsOnlyReader(int32_t node, ValueId value) const;
  // The node of which that is so; -1 for a value that has none.
  int32_t OnlyReaderOf(ValueId value) const;
  bool IsOutput(ValueId value) const { return is_output_[static_cast<size_t>(value.index)]; }
  // Whether one of the node's values is an output of the graph.
  bool MakesOutput(const Node& node) const;
  // The gradient of a max_pool2d of that graph, if the two are all that reads the image, which is
  // no output, nor is what they make; -1 else, and for other nodes.
  int32_t MaxPoolGradOf(const Graph& graph, int32_t pool) const;

 private:
  std::vector<bool> live_;                     // by node
  std::vector<std::vector<int32_t>> readers_;  // by value
  std::vector<bool> is_output_;                // by value
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_USES_H_

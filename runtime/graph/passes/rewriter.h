// Rewriter: how a pass makes a new graph from an old one, node by node in the old order. Internal
// to graph/passes/.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_REWRITER_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_REWRITER_H_

#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace ringmaster::graph {

class Rewriter {
 public:
  // Begins with what comes from outside: inputs, parameters and states, all of them. `from` must
  // outlive the rewriter.
  explicit Rewriter(const Graph& from);

  Graph& to() { return to_; }
  const Graph& to() const { return to_; }
  // What stands for a value of the old graph in the new one; invalid where nothing does yet.
  ValueId Of(ValueId old) const { return images_[static_cast<size_t>(old.index)]; }
  std::vector<ValueId> Of(std::span<const ValueId> old) const;
  void Map(ValueId old, ValueId now) { images_[static_cast<size_t>(old.index)] = now; }

  // Adds the old node with other attributes and inputs, which are the new graph's, under its name.
  // Its outputs stand for the old ones.
  void Add(const Node& node, const Attributes& attributes, std::span<const ValueId> inputs);
  // As it was.
  void Copy(const Node& node) { Add(node, node.attributes, Of(node.inputs)); }

  // The new graph, with the old one's outputs.
  Graph Finish();

 private:
  const Graph& from_;
  Graph to_;
  std::vector<ValueId> images_;  // by old value
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_REWRITER_H_

// Which ranks share a machine.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NODE_MAP_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NODE_MAP_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives/cost_model.h"

namespace ringmaster::collectives {

// A plain value; must be the same on every rank of a group.
class NodeMap {
 public:
  // `machines[r]` names the machine of rank r; ranks of one name are one node, and a rank without a
  // name is a node of its own. Nodes are numbered by their lowest ranks.
  explicit NodeMap(std::span<const std::string> machines);

  // Every rank a node of its own.
  static NodeMap Apart(int world);

  int world() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(ranks_.size()); }
  int node_of(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  // Increasing; the first leads the node.
  std::span<const int> ranks_of(int node) const { return ranks_[static_cast<size_t>(node)]; }
  // The ranks of the smallest node.
  int least_per_node() const;
  Shape shape() const { return {world(), nodes()}; }
  // Which ranks are together, in 64 bits that two maps share where they are equal, and as text for
  // messages: "0,1|2,3", cut off where it is long.
  uint64_t digest() const { return digest_; }
  const std::string& text() const { return text_; }

 private:
  std::vector<int> node_of_;             // by rank
  std::vector<std::vector<int>> ranks_;  // by node
  uint64_t digest_ = 0;
  std::string text_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NODE_MAP_H_

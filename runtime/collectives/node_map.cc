#include "runtime/collectives/node_map.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/collectives/operation.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kMaxText = 60;

}  // namespace

NodeMap::NodeMap(std::span<const std::string> machines) {
  std::map<std::string, int> named;
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    int node = nodes();
    if (!machines[rank].empty()) node = named.emplace(machines[rank], node).first->second;
    if (node == nodes()) ranks_.emplace_back();
    node_of_.push_back(node);
    ranks_[static_cast<size_t>(node)].push_back(static_cast<int>(rank));
  }
  digest_ = Digest(node_of_.data(), node_of_.size() * sizeof(int));
  for (const std::vector<int>& ranks : ranks_) {
    if (!text_.empty()) text_ += '|';
    text_ += fmt::format("{}", fmt::join(ranks, ","));
  }
  if (text_.size() > kMaxText) text_ = text_.substr(0, kMaxText) + "...";
}

NodeMap NodeMap::Apart(int world) {
  return NodeMap(std::vector<std::string>(static_cast<size_t>(world)));
}

int NodeMap::least_per_node() const {
  const auto least =
      std::min_element(ranks_.begin(), ranks_.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return static_cast<int>(least->size());
}

}  // namespace ringmaster::collectives

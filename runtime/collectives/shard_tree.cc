#include "runtime/collectives/shard_tree.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>

#include "common/check.h"

namespace ringmaster::collectives {
namespace {

// Appends the maximal nodes under `node` that `owned` (increasing) covers.
void AppendCover(ShardRange node, std::span<const int> owned, std::vector<ShardRange>* cover) {
  if (owned.empty()) return;
  if (static_cast<int>(owned.size()) == node.size()) {
    cover->push_back(node);
    return;
  }
  const int mid = SplitPoint(node);
  const auto right = std::lower_bound(owned.begin(), owned.end(), mid);
  const size_t left_count = static_cast<size_t>(right - owned.begin());
  AppendCover({node.begin, mid}, owned.first(left_count), cover);
  AppendCover({mid, node.end}, owned.subspan(left_count), cover);
}

// How many maximal nodes under `node` a contiguous range covers.
size_t CoverSize(ShardRange node, ShardRange owned) {
  if (owned.begin >= node.end || owned.end <= node.begin) return 0;
  if (owned.begin <= node.begin && owned.end >= node.end) return 1;
  const int mid = SplitPoint(node);
  return CoverSize({node.begin, mid}, owned) + CoverSize({mid, node.end}, owned);
}

// Returns the buffer that holds `node` after the additions that it appends.
int AppendPlan(ShardRange node, const std::map<ShardRange, int>& buffers,
               std::vector<Addition>* plan) {
  if (const auto found = buffers.find(node); found != buffers.end()) return found->second;
  RM_CHECK(node.size() > 1, "the nodes do not cover every shard");
  const int mid = SplitPoint(node);
  const int left = AppendPlan({node.begin, mid}, buffers, plan);
  const int right = AppendPlan({mid, node.end}, buffers, plan);
  plan->push_back({left, right});
  return left;
}

}  // namespace

int SplitPoint(ShardRange node) {
  RM_CHECK(node.size() >= 2, "a leaf does not split");
  return node.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.size() - 1)));
}

ShardRange ParentNode(int shards, ShardRange node) {
  ShardRange parent{0, shards};
  while (true) {
    const int mid = SplitPoint(parent);
    const bool is_left = node.end <= mid;
    const ShardRange child = is_left ? ShardRange{parent.begin, mid} : ShardRange{mid, parent.end};
    if (child == node) return parent;
    parent = child;
  }
}

ShardRange OwnedShards(int shards, int world, int rank) {
  RM_CHECK(world >= 1 && world <= shards,
           "the world must have between 1 and as many ranks as there are shards");
  RM_CHECK(rank >= 0 && rank < world, "the rank is not in the world");
  const auto boundary = [&](int r) {
    return static_cast<int>(static_cast<int64_t>(shards) * r / world);
  };
  return {boundary(rank), boundary(rank + 1)};
}

std::vector<ShardRange> CoveringNodes(int shards, std::span<const int> owned) {
  RM_CHECK(shards >= 1, "there must be at least one shard");
  RM_CHECK(std::adjacent_find(owned.begin(), owned.end(), std::greater_equal<int>()) == owned.end(),
           "the shards must be increasing");
  RM_CHECK(owned.empty() || (owned.front() >= 0 && owned.back() < shards),
           "a shard is out of range");
  std::vector<ShardRange> cover;
  AppendCover({0, shards}, owned, &cover);
  return cover;
}

std::vector<ShardRange> CoveringNodes(int shards, ShardRange owned) {
  std::vector<int> list(owned.empty() ? 0 : static_cast<size_t>(owned.size()));
  std::iota(list.begin(), list.end(), owned.begin);
  return CoveringNodes(shards, list);
}

size_t MostSums(int shards, ShardRange owned) {
  size_t most = 0;
  for (int end = owned.begin + 1; end <= owned.end; ++end)
    most = std::max(most, CoverSize({0, shards}, {owned.begin, end}));
  return most;
}

std::vector<Addition> CombiningPlan(int shards, std::span<const ShardRange> nodes) {
  RM_CHECK(shards >= 1, "there must be at least one shard");
  std::map<ShardRange, int> buffers;
  for (size_t i = 0; i < nodes.size(); ++i) buffers[nodes[i]] = static_cast<int>(i);
  std::vector<Addition> plan;
  AppendPlan({0, shards}, buffers, &plan);
  RM_CHECK(plan.size() + 1 == nodes.size(), "the nodes overlap or are no nodes of the tree");
  return plan;
}

}  // namespace ringmaster::collectives

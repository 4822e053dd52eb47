// Who adds which part of which node: the plan of halving_sum.h.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/check.h"
#include "runtime/collectives/algorithms/halving_sum.h"

namespace ringmaster::collectives {
namespace {

// A part with less elements is not cut: its message would cost more than its addition.
constexpr size_t kLeastPart = 128;

class Planner {
 public:
  Planner(std::span<const std::vector<ShardRange>> cover, size_t elements) : elements_(elements) {
    for (size_t rank = 0; rank < cover.size(); ++rank) {
      for (const ShardRange& node : cover[rank]) owner_[node] = static_cast<int>(rank);
    }
  }

  // The shares of the node's sum, in the array's order; appends the steps that lead to them.
  std::vector<Share> Visit(ShardRange node) {
    if (const auto found = owner_.find(node); found != owner_.end())
      return {{{0, elements_}, found->second}};
    RM_CHECK(node.size() > 1, "the nodes do not cover every shard");
    const int mid = SplitPoint(node);
    const std::vector<Share> left = Visit({node.begin, mid});
    const std::vector<Share> right = Visit({mid, node.end});
    NodeStep step{node, Swaps(left, right)};
    std::vector<Share> shares;
    for (const PartSwap& swap : step.swaps) {
      Append({swap.low, swap.left}, &shares);
      Append({swap.high, swap.right}, &shares);
    }
    steps_.push_back(std::move(step));
    return shares;
  }

  std::vector<NodeStep> Take() { return std::move(steps_); }

 private:
  static size_t Ranks(const std::vector<Share>& shares) {
    std::set<int> ranks;
    for (const Share& share : shares) ranks.insert(share.rank);
    return ranks.size();
  }

  static void Append(const Share& share, std::vector<Share>* shares) {
    if (share.piece.count == 0) return;
    if (!shares->empty() && shares->back().rank == share.rank) {
      shares->back().piece.count += share.piece.count;
    } else {
      shares->push_back(share);
    }
  }

  // Each part that one rank holds on the left and one on the right is cut in proportion to the
  // ranks of the two sides, so that all come out with about as much.
  static std::vector<PartSwap> Swaps(const std::vector<Share>& left,
                                     const std::vector<Share>& right) {
    const size_t lefts = Ranks(left);
    const size_t rights = Ranks(right);
    std::vector<PartSwap> swaps;
    size_t at = 0;
    for (size_t l = 0, r = 0; l < left.size() && r < right.size();) {
      const size_t left_end = left[l].piece.offset + left[l].piece.count;
      const size_t right_end = right[r].piece.offset + right[r].piece.count;
      const size_t end = std::min(left_end, right_end);
      const size_t count = end - at;
      size_t low = count / (lefts + rights) * lefts;
      if (count < kLeastPart) low = swaps.size() % 2 == 0 ? count : 0;
      if (left[l].rank == right[r].rank) low = count;
      if (count > 0)
        swaps.push_back({left[l].rank, right[r].rank, {at, low}, {at + low, count - low}});
      at = end;
      if (left_end == end) ++l;
      if (right_end == end) ++r;
    }
    return swaps;
  }

  const size_t elements_;
  std::map<ShardRange, int> owner_;
  std::vector<NodeStep> steps_;
};

}  // namespace

std::vector<NodeStep> HalvingPlan(int shards, std::span<const std::vector<ShardRange>> cover,
                                  size_t elements) {
  Planner planner(cover, elements);
  planner.Visit({0, shards});
  return planner.Take();
}

}  // namespace ringmaster::collectives

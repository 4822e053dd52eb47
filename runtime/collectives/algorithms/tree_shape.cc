// The shapes of the trees of tree.h.
#include <algorithm>
#include <bit>

#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

// The binary tree over 1 ... `count` in order: a number's level is that of its lowest set bit, so
// the odd ones are the leaves.
int BinaryRoot(int count) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(count)));
}

int BinaryParent(int count, int number) {
  const int low = number & -number;
  // On the way to a missing parent the numbers hang under the next one below.
  const bool is_left = (number & (2 * low)) == 0 && number + low <= count;
  return is_left ? number + low : number - low;
}

TreeChildren BinaryChildren(int count, int number) {
  TreeChildren children;
  int step = (number & -number) / 2;
  if (step == 0) return children;
  children.push_back(number - step);
  while (step > 0 && number + step > count) step /= 2;
  if (step > 0) children.push_back(number + step);
  return children;
}

// The place of `index` (0 ... count - 1) in the `tree`-th of two trees; the second is the first
// moved on by one, so that odd and even change places.
Tree BinaryTree(int count, int tree, int index) {
  const int number = RingRank(index, tree, count) + 1;
  const auto index_of = [&](int of) { return RingRank(of - 1, -tree, count); };
  Tree place;
  if (number != BinaryRoot(count)) place.parent = index_of(BinaryParent(count, number));
  for (const int child : BinaryChildren(count, number)) place.children.push_back(index_of(child));
  return place;
}

}  // namespace

// With places counted from the root, the parent of place v is v without its lowest set bit, and its
// children are v + 2^k for every 2^k below that bit (for the root: below the world size). Far
// children first: their subtrees are the deepest.
Tree BinomialTree(int world, int root, int rank) {
  const int place = RingRank(rank, -root, world);
  const int reach =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(world))) : place & -place;
  Tree tree;
  if (place != 0) tree.parent = RingRank(root, place - reach, world);
  for (int step = reach / 2; step >= 1; step /= 2) {
    if (place + step < world) tree.children.push_back(RingRank(root, place + step, world));
  }
  return tree;
}

Tree TwoLevelTree(const NodeMap& nodes, int root, int rank) {
  const int node = nodes.node_of(rank);
  const int root_node = nodes.node_of(root);
  // `root` leads its node.
  const auto leader_of = [&](int n) { return n == root_node ? root : nodes.ranks_of(n).front(); };
  const auto ranks = nodes.ranks_of(node);
  const auto place_of = [&](int r) {
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), r) - ranks.begin());
  };
  const int leader = leader_of(node);
  const Tree inside =
      BinomialTree(static_cast<int>(ranks.size()), place_of(leader), place_of(rank));
  Tree tree;
  if (rank == leader) {
    const Tree between = BinomialTree(nodes.nodes(), root_node, node);
    if (between.parent >= 0) tree.parent = leader_of(between.parent);
    for (const int child : between.children) tree.children.push_back(leader_of(child));
  } else {
    tree.parent = ranks[static_cast<size_t>(inside.parent)];
  }
  for (const int child : inside.children)
    tree.children.push_back(ranks[static_cast<size_t>(child)]);
  return tree;
}

Trees DoubleTree(int world, int rank) {
  return {BinaryTree(world, 0, rank), BinaryTree(world, 1, rank)};
}

Trees DoubleTreeFrom(int world, int root, int rank) {
  Trees trees(2);
  const int others = world - 1;
  if (others == 0) return trees;
  const auto rank_of = [&](int index) { return RingRank(root, 1 + index, world); };
  for (int t = 0; t < 2; ++t) {
    Tree& tree = trees[static_cast<size_t>(t)];
    if (rank == root) {
      tree.children = {rank_of(RingRank(BinaryRoot(others) - 1, -t, others))};
      continue;
    }
    const Tree place = BinaryTree(others, t, RingRank(rank, -root - 1, world));
    tree.parent = place.parent < 0 ? root : rank_of(place.parent);
    for (const int child : place.children) tree.children.push_back(rank_of(child));
  }
  return trees;
}

}  // namespace ringmaster::collectives

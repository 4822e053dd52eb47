// The one binary tree over virtual shards in which every ordered sum is added.
//
// The global batch is cut into V virtual shards, V fixed for the job. Floating-point addition is
// not associative, so the order of addition must not depend on the number of workers. It is fixed
// here: the tree over the leaves [0, V) is
//
//   node [lo, hi) with hi - lo == 1   is leaf `lo`
//   node [lo, hi) otherwise           is node [lo, mid) + node [mid, hi),
//                                     mid = lo + the largest power of two smaller than hi - lo
//
// (the shape of the Merkle tree of RFC 6962, section 2.1, which is also defined for every V). Six
// shards are added as ((0+1)+(2+3))+(4+5). A worker that owns any set of shards sends the maximal
// nodes that the set covers; whoever adds the nodes of all workers walks the same tree and so gets
// the same bits.
//
// Pure functions without state; safe from any thread. Arguments out of range are bugs of the caller
// and end the program with a message.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_SHARD_TREE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_SHARD_TREE_H_

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::collectives {

// A half-open range of shards, [begin, end); as a node of the tree, the sum of those shards.
struct ShardRange {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  auto operator<=>(const ShardRange&) const = default;
};

// Where the node [node.begin, node.end) splits: its children are [begin, mid) and [mid, end).
// Precondition: node.size() >= 2.
int SplitPoint(ShardRange node);

// The node whose child `node` is. Precondition: `node` is a node of the tree over [0, shards) and
// not its root.
ShardRange ParentNode(int shards, ShardRange node);

// The shards that `rank` of `world` owns by default: contiguous, in rank order, sizes differing by
// at most one. Preconditions: 1 <= world <= shards, 0 <= rank < world.
ShardRange OwnedShards(int shards, int world, int rank);

// The maximal nodes of the tree over [0, shards) whose leaves all lie in the set, in shard order.
// `owned` need not be contiguous; it must be increasing and within [0, shards). At most 2
// log2(shards) nodes for a contiguous set; one node for the whole.
std::vector<ShardRange> CoveringNodes(int shards, std::span<const int> owned);

// The same for a contiguous range.
std::vector<ShardRange> CoveringNodes(int shards, ShardRange owned);

// How many sums lie side by side, at most, where a contiguous range's shards are added one by one,
// in order, each onto what its sum may be joined with: the most that cover what was added so far.
size_t MostSums(int shards, ShardRange owned);

// One addition of a plan: buffer `into` becomes buffer `into` + buffer `from`.
struct Addition {
  int into = 0;
  int from = 0;
  bool operator==(const Addition&) const = default;
};

// The additions, in order, that turn buffers holding `nodes` (each a node of the tree over [0,
// shards), together covering every leaf exactly once, in any order) into the root's sum, which ends
// in the buffer that holds the leftmost node. The left operand is always the lower one. Empty when
// the only node is the root.
std::vector<Addition> CombiningPlan(int shards, std::span<const ShardRange> nodes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_SHARD_TREE_H_

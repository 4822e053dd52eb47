// Algorithms over trees: pieces of the array follow one another up or down the levels. Called
// inside an operation of the transport; blocking and errors as Transport's. They do not call
// Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TREE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TREE_H_

#include <cstddef>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// In the order in which they are sent to. As many as a rank has in a tree of 2^16 ranks take
// nothing from the heap.
using TreeChildren = absl::InlinedVector<int, 16>;

// A rank's place in a tree.
struct Tree {
  int parent = -1;  // -1: it is the root
  TreeChildren children;
};
using Trees = absl::InlinedVector<Tree, 2>;

// The binomial tree from `root`: log2(W) levels, the root has log2(W) children.
Tree BinomialTree(int world, int root, int rank);

// A binomial tree between the nodes, from `root`, and one inside each: each piece enters a node
// once.
Tree TwoLevelTree(const NodeMap& nodes, int root, int rank);

// Two binary trees over all ranks, each for half of the array. Who has children in one of them is a
// leaf of the other (but for one rank), so every rank sends and receives about as much, at log2(W)
// levels. (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", 2009.) At least two ranks.
Trees DoubleTree(int world, int rank);

// The same from `root`, which stands above the roots of two trees over the others.
Trees DoubleTreeFrom(int world, int root, int rank);

// The root's `data` to all. Where there are several trees, each serves an equal slice of it. This
// rank's places in them; the root's is the same rank in all, or `data` is whole on each tree's
// root.
absl::Status TreeBroadcast(Transport& transport, std::span<const Tree> trees, Elements data,
                           size_t piece_bytes);

// Up the trees: the combined values come to `work` on each tree's root. `work` is as long as `in`,
// and the same memory or without overlap; on a rank with children it holds what was on the way. On
// a rank without any it is not touched, and may be empty.
absl::Status TreeReduce(Transport& transport, std::span<const Tree> trees, const Combiner& combine,
                        ConstElements in, Elements work, size_t piece_bytes);

// Up and down again: out = every rank's `in` combined, the same bits on each. At least two ranks.
absl::Status TreeAllreduce(Transport& transport, std::span<const Tree> trees,
                           const Combiner& combine, ConstElements in, Elements out,
                           size_t piece_bytes);

// A dissemination barrier (Hensgen, Finkel and Manber, 1988): in step k each rank tells the one 2^k
// further, and waits for the one 2^k before.
absl::Status DisseminationBarrier(Transport& transport);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TREE_H_

// Adasum: vectors joined by how much they agree (Maleki, Musuvathi, Mytkowicz et al., "Scaling
// Distributed Training with Adaptive Summation", 2020).
//
//   join(a, b) = (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b
//
// for each tensor by itself: orthogonal ones are added, equal ones averaged. Shards are joined
// along the tree of shard_tree.h, and dot products are taken in double over fixed blocks, added in
// their order, so the result has the same bits at every world size, as the ordered sum has.
//
//   Adasum join(shards, {0, 4096});                        // two tensors, from 0 and from 4096 on
//   for (int s = owned.begin; s < owned.end; ++s) RM_RETURN_IF_ERROR(join.Add(s, gradient));
//   RM_RETURN_IF_ERROR(join.Reduce(*communicator, total, "gradients"));
//   join.Clear();
//
// Each rank owns a slice of the vector: it receives every rank's nodes for it, then the ranks go up
// the tree together, exchanging three numbers a block at each level, and gather the slices. Out of
// each rank go a ring's bytes for aligned ranges, in 2 + log2(V) steps.
//
// Not thread-safe. Reduce is a collective operation of the communicator, made of several, and
// blocks as those do.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/shard_tree.h"

namespace ringmaster::collectives {

class Communicator;

class Adasum {
 public:
  // `shards` >= 1; `elements` the length of every shard's vector; tensors begin at `tensors`,
  // increasing from 0, each going to where the next one begins.
  Adasum(int shards, size_t elements, std::vector<size_t> tensors);

  // Takes shard `shard`'s vector, in increasing order. kInvalidArgument: it is not the next, or has
  // a wrong length.
  absl::Status Add(int shard, std::span<const float> values);

  // out = all shards joined. Every rank calls it, having added OwnedShards(shards, world, rank)
  // (kFailedPrecondition otherwise). What was added is only read; `out` holds the result only after
  // OK.
  absl::Status Reduce(Communicator& communicator, std::span<float> out, std::string_view name);

  // Forgets what was added.
  void Clear() { nodes_.clear(); }

 private:
  // A part of one tensor whose dot products are taken at once.
  struct Block {
    size_t offset = 0;
    size_t count = 0;
    size_t tensor = 0;
  };
  struct Dots {
    double ab = 0;
    double aa = 0;
    double bb = 0;
  };

  // In double: where one vector is far longer than the other, a factor may be beyond float although
  // what it makes of the short one is not.
  struct Factors {
    double a = 1;
    double b = 1;
  };
  // Who has what, all by rank but the first.
  struct Layout {
    std::vector<ShardRange> nodes;  // of all ranks
    std::vector<size_t> nodes_of;
    std::vector<Piece> slices;      // of blocks
    std::vector<size_t> values_of;  // in the slice
  };

  static Dots DotsOf(const float* a, const float* b, size_t count);
  // By tensor, from the dots of all blocks.
  std::vector<Factors> FactorsFor(std::span<const Dots> dots) const;
  // into = factors.a * into + factors.b * from, over the blocks [first, first + count), whose
  // values begin at the pointers.
  void Join(std::span<const Factors> factors, size_t first, size_t count, float* into,
            const float* from) const;
  // Where a block's values begin; the vector's end behind the last one.
  size_t OffsetOf(size_t block) const;
  Layout LayoutOf(int world) const;
  // Reduce, but for memory that runs out.
  absl::Status JoinAll(Communicator& communicator, std::span<float> out,
                       std::string_view name) const;
  absl::Status CheckAdded(Communicator& communicator, std::string_view name) const;
  absl::Status ExchangeNodes(Communicator& communicator, const Layout& layout,
                             std::vector<float>* parts, std::string_view name) const;
  absl::Status ClimbLevel(Communicator& communicator, const Layout& layout,
                          std::span<const Addition> level, std::vector<float>* parts,
                          std::string_view name) const;

  const int shards_;
  const size_t elements_;
  size_t tensors_ = 0;
  std::vector<Block> blocks_;
  std::map<ShardRange, std::vector<float>> nodes_;  // complete ones without a complete parent
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_

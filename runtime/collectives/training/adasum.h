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
// Memory: a vector per node of the tree that is complete and whose parent is not, and in Reduce one
// more for each and a slice of every rank's; all of it is kept for the next step.
//
// Not thread-safe. Reduce is a collective operation of the communicator, made of several, and
// blocks as those do.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_

#include <cstddef>
#include <optional>
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

  // Forgets what was added, keeps the memory for the next step.
  void Clear();

  // What it keeps from its first sum on, as `rank` of `world`, but for a few numbers a block.
  size_t bytes(int world, int rank) const;

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
  // A complete node without a complete parent.
  struct Node {
    ShardRange range;
    std::vector<float> values;
  };

  // Who has what, and what follows from it for this rank: the same in every step.
  struct Plan {
    int world = 0;
    int rank = 0;
    std::vector<ShardRange> own;                // nodes,
    std::vector<ShardRange> nodes;              // and those of all ranks
    std::vector<std::vector<Addition>> levels;  // joins that do not depend on one another
    // By rank:
    std::vector<Piece> slices;      // of blocks
    std::vector<size_t> values_of;  // in the slice
    std::vector<size_t> send_counts;
    std::vector<size_t> receive_counts;
  };

  static Dots DotsOf(const float* a, const float* b, size_t count);
  // factors_, from dots_.
  void FindFactors();
  // into = factor.a * into + factor.b * from, over the blocks [first, first + count), whose values
  // begin at the pointers.
  void Join(size_t first, size_t count, float* into, const float* from) const;
  // Where a block's values begin; the vector's end behind the last one.
  size_t OffsetOf(size_t block) const;
  std::vector<float> CopyToBuffer(std::span<const float> values);
  Plan PlanFor(int world, int rank) const;
  // Reduce, but for memory that runs out.
  absl::Status JoinAll(Communicator& communicator, std::span<float> out, std::string_view name);
  absl::Status CheckAdded(std::string_view name) const;
  absl::Status ExchangeNodes(Communicator& communicator, std::string_view name);
  absl::Status ClimbLevel(Communicator& communicator, std::span<const Addition> level,
                          std::string_view name);

  const int shards_;
  const size_t elements_;
  size_t tensors_ = 0;
  std::vector<Block> blocks_;
  std::vector<Node> nodes_;               // in shard order
  std::vector<std::vector<float>> free_;  // buffers for reuse
  std::optional<Plan> plan_;
  // Members for their memory.
  std::vector<float> send_;          // this rank's nodes, slice by slice
  std::vector<float> parts_;         // every rank's nodes for this rank's slice, in shard order
  std::vector<Dots> own_dots_;       // of a level, for this rank's slice,
  std::vector<Dots> all_dots_;       // and for all,
  std::vector<size_t> dots_counts_;  // of each rank so many bytes
  std::vector<Dots> dots_;           // of two nodes, by block,
  std::vector<Dots> tensor_dots_;    // and by tensor
  std::vector<Factors> factors_;     // by tensor
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_ADASUM_H_

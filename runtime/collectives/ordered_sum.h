// The sum over virtual shards that has the same bits at every world size.
//
// The caller computes the gradient of each shard that it owns, one after another, and adds it;
// Reduce then joins the ranks' parts. Additions happen in the order of the tree of shard_tree.h,
// whoever makes them, so the result does not depend on which rank owned which shard. -0, NaN and
// infinities are treated as plain additions of that order treat them; nothing is ever added to fill
// a gap (adding zero would turn -0 to +0).
//
//   OrderedSum<float> sum(shards, gradient.size());                 // once
//   for (int s = owned.begin; s < owned.end; ++s) {                 // each step
//     ...backward of shard s into `gradient`...
//     RM_RETURN_IF_ERROR(sum.Add(s, gradient));
//   }
//   RM_RETURN_IF_ERROR(sum.Reduce(*communicator, total, "step"));
//   sum.Clear();
//
// Memory: one buffer per node of the tree that is complete and whose parent is not: with shards
// added in increasing order at most log2(V) + 1 buffers for a range aligned to the tree and 2
// log2(V) for any other, never V.
//
// Commit rule: Reduce only reads the partial sums. If it fails, the object still holds this rank's
// whole contribution: shards of a lost rank may be added and Reduce called again with the next
// round's communicator. Not thread-safe; Reduce is a collective operation of the communicator and
// blocks as those do.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ORDERED_SUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ORDERED_SUM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/algorithms/ownership.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/shard_tree.h"

namespace ringmaster::collectives {

class Communicator;
template <typename T>
class DirectSum;
template <typename T>
class HalvingSum;

// In which order the shards are added. kByRank exists for one test of the product: it adds in the
// order in which shards arrive on a rank and then by rank, so its bits depend on the world size,
// which shows that a comparison of digests would notice a wrong order.
enum class SumOrder { kTree, kByRank };

// T is float, double, BFloat16 or HalfBlock (compression/sixteen_bits.h). The 16-bit ones are
// rounded at every node of the tree, whoever adds it, so theirs are the same bits at every world
// size too; `elements` and the spans then count what is stored: numbers, or blocks.
template <typename T>
class OrderedSum {
 public:
  // `shards` >= 1 is V, `elements` the length of every shard's vector (0 is allowed).
  OrderedSum(int shards, size_t elements, SumOrder order = SumOrder::kTree);
  ~OrderedSum();

  // Adds shard `shard`'s vector; `values` is copied or added at once and not kept. Any order of
  // shards gives the same bits; increasing order needs the least memory. kInvalidArgument: shard
  // out of range, added before, or a wrong length.
  absl::Status Add(int shard, std::span<const T> values);

  // out = the sum over all V shards, on every rank. Every rank calls it; together the ranks must
  // have added each shard exactly once (kFailedPrecondition on every rank otherwise, naming the
  // shard and the ranks). `out` has `elements` values and holds the result only after OK. Three
  // schedules with the same bits, of which the communicator's selector takes the fastest: direct
  // and one-shot (algorithms/direct_sum.h) and halving (algorithms/halving_sum.h). For ranges
  // aligned to the tree direct and halving move a ring's bytes: 2(W-1)/W of the vector out of each
  // rank; one-shot moves W-1 times the vector, in one step. Direct and one-shot keep at most a
  // segment more for each node that must wait for its turn, halving a vector for each sum that
  // `out` has no room for. Nothing is allocated after the second time.
  //
  // Who has which shards the ranks tell one another in their first sum over a communicator. In
  // later ones over the same each must bring the same again (kFailedPrecondition on every rank
  // otherwise, naming the shard and the rank), until all of them have called ForgetOwners.
  absl::Status Reduce(Communicator& communicator, std::span<T> out, std::string_view name);

  // Forgets what was added, keeps the memory for the next step.
  void Clear();

  // The next sum may be of shards that have changed hands. For every rank, between the same sums.
  void ForgetOwners() { told_.clear(); }

  int shards() const { return shards_; }
  size_t elements() const { return elements_; }
  size_t buffers_in_use() const { return nodes_.size(); }

 private:
  using Node = std::pair<ShardRange, std::vector<T>>;

  void AddInTreeOrder(int shard, std::span<const T> values);
  void AddAsItComes(std::span<const T> values);
  typename std::vector<Node>::iterator Find(const ShardRange& range);
  // In shard order.
  void Keep(const ShardRange& range, std::vector<T> values);
  std::vector<T> CopyToBuffer(std::span<const T> values);
  // An error where this rank does not bring the shards that it is known to have.
  absl::Status CheckUnchanged(const Ownership& owners, int rank) const;
  // Sets note_ and detail_: mostly once: an operation is to cost no more than its messages.
  // `digest` is of the owners, 0 where they are to be told.
  void Describe(Algorithm algorithm, uint64_t digest);

  const int shards_;
  const size_t elements_;
  const SumOrder order_;
  Ownership added_;  // of this rank alone
  // Complete nodes without a complete parent, in shard order (kByRank: one sum).
  std::vector<Node> nodes_;
  std::vector<std::vector<T>> free_;  // buffers for reuse
  std::unique_ptr<DirectSum<T>> direct_;
  std::unique_ptr<HalvingSum<T>> halving_;
  // Who has which shards, as the ranks of a communicator have told one another.
  struct Told {
    uint64_t communicator;  // its serial
    uint64_t round;
    Ownership owners;
    uint64_t digest;
  };
  std::vector<Told> told_;  // of the round; of as many communicators as were summed over
  // What Reduce hands on; members for their memory.
  std::vector<std::span<const T>> sums_;  // of nodes_
  std::string note_;                      // of the operation, "4 shards by direct",
  uint64_t detail_ = 0;                   // and what must agree; of these:
  std::optional<std::pair<Algorithm, uint64_t>> noted_;
};

extern template class OrderedSum<float>;
extern template class OrderedSum<double>;
extern template class OrderedSum<BFloat16>;
extern template class OrderedSum<HalfBlock>;

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ORDERED_SUM_H_

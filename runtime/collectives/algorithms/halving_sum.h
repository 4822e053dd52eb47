// The halving schedule of the ordered sum: the shard tree itself, each of its nodes spread over the
// ranks that have shards under it.
//
// A node whose shards are one rank's is whole on that rank. Any other node's sum is cut among the
// ranks of its two sides: where rank i holds a part of the left side's sum and rank j the same part
// of the right side's, they swap: i gets what it lacks for one share of the part, j for the rest,
// and each adds left to right. After the root every rank has a share of the whole sum, and the same
// swaps backwards spread it. For W a power of two and ranges aligned to the tree this is recursive
// halving and doubling, nearest neighbours first: 2n(W-1)/W bytes out of each rank, as a ring, in 2
// log2(W) steps and messages; other ranges are cut into more, smaller parts. Before it begins, the
// ranks tell one another in log2(W) steps who has which shards, unless they know. (Rabenseifner
// 1997, with the tree in place of the ranks' order; Bruck et al. 1997 for the exchange.)
//
// Additions are those of the tree, so the bits are the direct schedule's (direct_sum.h).
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_SUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_SUM_H_

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/algorithms/contribution.h"
#include "runtime/collectives/algorithms/ownership.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/shard_tree.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// A part of a node's sum, and who holds it.
struct Share {
  Piece piece;
  int rank = 0;
};

// What two ranks swap of one part: `left` holds it of the left side's sum and adds `low`, `right`
// of the right side's and adds `high`. The same rank twice: it has both, and all is `low`.
struct PartSwap {
  int left = 0;
  int right = 0;
  Piece low;
  Piece high;
};

// How a node's sum comes from those of its sides.
struct NodeStep {
  ShardRange node;
  std::vector<PartSwap> swaps;  // by place in the array
};

// The steps for all nodes that are no single rank's, each after those of its sides. `cover[r]`: the
// maximal nodes of rank r; together every shard once. Pure: the same on every rank.
std::vector<NodeStep> HalvingPlan(int shards, std::span<const std::vector<ShardRange>> cover,
                                  size_t elements);

// Runs of one sum after another, for SumOrder::kTree, which keep their memory, and the plan as long
// as nobody's shards change. Not thread-safe.
template <typename T>
class HalvingSum {
 public:
  // One run. The transport is inside an operation; blocking and errors as Transport's.
  // Tells `mine.owners` who has which shards. kFailedPrecondition: the ranks together do not have
  // each shard exactly once.
  absl::Status Run(Transport& transport, const Contribution<T>& mine, std::span<T> out,
                   size_t segment_bytes);

 private:
  // What does not change while nobody's shards do.
  struct Plan {
    Ownership ownership;
    size_t elements;
    std::vector<std::vector<ShardRange>> cover;  // the nodes that each rank brings
    std::vector<NodeStep> steps;
    std::vector<int> owners;  // ranks that have shards,
    std::vector<int> idle;    // and those that have none
  };

  // This rank's parts of a node's sum lie in `values`, at their places in the array. `sum` is the
  // same memory, or null where it may only be read.
  struct Held {
    const T* values = nullptr;
    T* sum = nullptr;
  };

  // A piece of what a peer has of one side, and this rank's own of the other side.
  struct Incoming {
    int from;
    bool is_left;  // what comes is the left side's
    Piece piece;
    const T* mine;
  };

  // One run's own.
  struct Context {
    Transport& transport;
    const Contribution<T>& mine;
    const std::span<T> out;
    const size_t segment_elements;
    bool out_is_taken = false;  // by the sum of some node
    size_t buffers_taken = 0;   // the first of buffers_
  };

  absl::Status RunSteps(Context& run);
  absl::Status ExchangeOwnership(Context& run);
  absl::Status MakePlan(const Context& run);
  static bool TakesPart(const Context& run, const NodeStep& step);
  Held HeldOf(const ShardRange& node) const;
  T* PlaceFor(Context& run, const ShardRange& node, const Held& left, const Held& right);
  absl::Status Add(Context& run, const NodeStep& step);
  absl::Status AddReceived(Context& run, const NodeStep& step, const Held& left, const Held& right,
                           T* sum);
  absl::Status CombineReceived(Context& run, T* sum) requires kCombines<T>;
  absl::Status AddAfterReceiving(Context& run, T* sum);
  absl::Status Spread(Context& run, const NodeStep& step);
  absl::Status ServeIdle(Context& run);
  static void Send(Context& run, int to, const T* values, Piece piece);

  std::optional<Plan> plan_;
  // Of the run in progress; members for their memory.
  std::vector<std::byte> rows_;  // of the ownership, from this rank on
  std::vector<std::pair<ShardRange, Held>> held_;
  std::vector<Incoming> incoming_;
  std::vector<Receipt> receipts_;
  std::array<std::vector<T>, 2> scratch_;  // what came and is not added yet
  std::vector<std::vector<T>> buffers_;    // for sums while `out` is taken, each of its length
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_SUM_H_

// The direct schedule of the ordered sum: rank r owns the r-th slice of the vector, receives every
// rank's nodes for it, adds them in the tree's order, and sends the sum to all. And one-shot: every
// rank sends all of its nodes to all others, each of which adds all of them itself.
//
// Unless it is known from a sum before, each rank first says which shards it has (a bit per shard),
// so that everybody knows which nodes come, and a shard that is missing or there twice is found
// before anything is added. Slices are worked through in pieces, of which the sums come back while
// further ones go (interleave.h), and nodes are combined as they arrive wherever the tree's order
// lets them (sum_schedule.h). Bytes out of each rank, for n bytes, W ranks and ranges aligned to
// the tree: 2n(W-1)/W, as a ring; in two steps instead of 2(W-1), over W-1 connections; n(W-1) in
// one step. For any order of addition (SumOrder).
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/algorithms/contribution.h"
#include "runtime/collectives/algorithms/ownership.h"
#include "runtime/collectives/algorithms/sum_schedule.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

enum class DirectSteps {
  kTwo,  // direct: slices to their owners, and sums back
  kOne,  // one-shot: everything to everybody
};

// Runs of one sum after another, which keep their memory, and the steps as long as nobody's shards
// change. Not thread-safe.
template <typename T>
class DirectSum {
 public:
  // One run, which every rank makes with the same `segment_bytes` and `steps`. The transport is
  // inside an operation, until whose end `mine`, `out` and this object must stay as they are;
  // blocking and errors as Transport's. Tells `mine.owners` who has which shards.
  // kFailedPrecondition: the ranks together do not have each shard exactly once.
  absl::Status Run(Transport& transport, const Contribution<T>& mine, std::span<T> out,
                   size_t segment_bytes, DirectSteps steps);

 private:
  // What does not change while nobody's shards do.
  struct Plan {
    Ownership ownership;
    int rank;
    SumSchedule schedule;
  };
  // One run's own.
  struct Context {
    Transport& transport;
    const Contribution<T>& mine;
    const std::span<T> out;
    bool is_agreed = false;
  };

  absl::Status RunSteps(Context& run, size_t segment_bytes, DirectSteps steps);
  absl::Status RunOneStep(Context& run, size_t largest);
  void Send(Context& run, int to, Piece piece);
  void TellOwnership(Context& run);
  absl::Status Agree(Context& run);
  // Adds a piece of what all bring, by the schedule's steps, each of which may leave a message on
  // its way: whoever needs what it becomes waits for that.
  absl::Status AddPiece(Context& run, Piece piece);
  absl::Status Take(Context& run, Piece piece, const SumStep& step);
  absl::Status CombineArriving(Context& run, Piece piece,
                               const SumStep& step) requires kCombines<T>;
  std::span<T> TargetOf(const Context& run, Piece piece, const SumPlace& place);
  std::span<const T> OperandOf(const Context& run, Piece piece, const SumPlace& place);
  std::optional<Receipt>& ReceiptOf(const SumPlace& place);  // of what is on its way there
  absl::Status WaitFor(Context& run, const SumPlace& place);

  // Makes room for the sums on their way of a piece of so many elements.
  void PrepareScratch(size_t elements);

  std::optional<Plan> plan_;
  // Of the run in progress; members for their memory.
  std::vector<Receipt> rows_;                    // of the others' shards, until all are here
  std::vector<std::optional<Receipt>> awaited_;  // of a piece: the result's, then the scratch's
  std::vector<std::unique_ptr<T[]>> scratch_;    // for sums on their way, each of a piece
  size_t scratch_elements_ = 0;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_

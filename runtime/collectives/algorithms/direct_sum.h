// The direct schedule of the ordered sum: rank r owns the r-th slice of the vector, receives every
// rank's nodes for it, adds them in the tree's order, and sends the sum to all.
//
// Each rank first says which shards it has (a bit per shard), so that everybody knows which nodes
// come, and a shard that is missing or there twice is found before anything is added. The slice is
// worked through in pieces, the next one being received while one is added. Bytes out of each rank,
// for n bytes, W ranks and ranges aligned to the tree: 2n(W-1)/W, as a ring; in two steps instead
// of 2(W-1), over W-1 connections. For any order of addition (SumOrder).
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/algorithms/contribution.h"
#include "runtime/collectives/algorithms/ownership.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// One run. The transport is inside an operation; blocking and errors as Transport's.
template <typename T>
class DirectSum {
 public:
  DirectSum(Transport& transport, Contribution<T> mine, std::span<T> out, size_t segment_bytes);

  // kFailedPrecondition: the ranks together do not have each shard exactly once.
  absl::Status Run();

 private:
  // A sum for the piece being added: what one rank has for one node.
  struct Source {
    int rank = 0;
    size_t index = 0;  // among that rank's
  };
  struct Received {
    std::vector<std::vector<T>> values;  // by source; empty for this rank's own
    std::vector<Receipt> receipts;
  };

  absl::Status RunSteps();
  absl::Status ExchangeOwnership();
  void PlanAdditions();
  void SendNodes();
  void PostPiece(const Piece& piece, Received* buffers);
  absl::Status AddPiece(const Piece& piece, Received* buffers);
  absl::Status AddSlice();
  absl::Status GatherSlices();

  Transport& transport_;
  const Contribution<T> mine_;
  const std::span<T> out_;
  Ownership ownership_;
  const size_t segment_elements_;
  std::vector<Source> sources_;
  std::vector<Addition> plan_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_SUM_H_

// Both halves of a reduction in two steps at once: while the pieces of all slices go to the ranks
// that combine them, the sums of those that went before come back, straight from the processor's
// cache.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_INTERLEAVE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_INTERLEAVE_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "common/status.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// `count` elements, rank r's slice the r-th, in pieces of at most `largest`. For each step:
//
//   send(to, piece)    posts what this rank has of a piece of rank `to`'s slice
//   sum(piece)         receives and adds a piece of this rank's own slice; returns a status
//   bytes_of(piece)    the place of a piece in the result, as bytes that may be written
//
// On each link the messages are: those of piece i of the target's slice, then sum i - kAhead of the
// sender's. A sum is sent when its piece of all ranks has been combined, so what is received into a
// place where this rank's own values were comes after these have been sent. Inside an operation of
// the transport; returns when every sum is here. Blocking and errors as Transport's.
template <typename Send, typename Sum, typename BytesOf>
absl::Status SumAndSpread(Transport& transport, size_t count, size_t largest, const Send& send,
                          const Sum& sum, const BytesOf& bytes_of) {
  constexpr size_t kAhead = 2;
  const int world = transport.world();
  const int me = transport.rank();
  const auto piece_of = [&](int owner, size_t step, size_t before) -> Piece {
    const Piece slice = SliceOf(count, world, owner);
    const size_t at = (step - before) * largest;
    if (step < before || at >= slice.count) return {};
    return {slice.offset + at, std::min(largest, slice.count - at)};
  };
  const size_t pieces = (SliceOf(count, world, 0).count + largest - 1) / largest;
  Receipts receipts(&transport.workspace());
  receipts.reserve(pieces * static_cast<size_t>(world - 1));
  const std::pmr::vector<int> others = OthersOf(transport);
  for (size_t step = 0; step < pieces + 2 * kAhead; ++step) {
    for (const int to : others) {
      if (const Piece piece = piece_of(to, step, 0); piece.count > 0) send(to, piece);
    }
    if (const Piece mine = piece_of(me, step, kAhead); mine.count > 0) {
      RM_RETURN_IF_ERROR(sum(mine));
      transport.PostSendToEach(others, bytes_of(mine));
    }
    for (int i = 1; i < world; ++i) {
      const int from = RingRank(me, -i, world);
      if (const Piece piece = piece_of(from, step, 2 * kAhead); piece.count > 0)
        receipts.push_back(transport.PostReceive(from, bytes_of(piece)));
    }
  }
  const Phase phase("gather slices");
  return WaitForAll(transport, receipts);
}

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_INTERLEAVE_H_

#include "runtime/collectives/algorithms/halving_doubling.h"

#include "common/status.h"
#include "runtime/collectives/algorithms/places.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

absl::Status Combine(Transport& transport, int from, const Combiner& combine, ConstElements mine,
                     Elements into, size_t segment_bytes) {
  Receipts receipts(&transport.workspace());
  CombinePieces(transport, from, combine, mine, into, segment_bytes, &receipts);
  return WaitForAll(transport, receipts);
}

absl::Status Receive(Transport& transport, int from, Elements into, size_t segment_bytes) {
  Receipts receipts(&transport.workspace());
  ReceivePieces(transport, from, into, segment_bytes, &receipts);
  return WaitForAll(transport, receipts);
}

// One swap: what this rank goes on with, and what its peer does.
struct Swap {
  int peer;
  Piece kept;
  Piece given;
};

}  // namespace

// What arrives of the result contains all that this rank has sent of that part, so it may be
// written over it.
absl::Status HalvingDoublingAllreduce(Transport& transport, const Combiner& combine,
                                      ConstElements in, Elements out, size_t segment_bytes) {
  const Places where(transport.world());
  const int rank = transport.rank();
  if (where.lends(rank)) {
    const Phase phase("lend");
    SendPieces(transport, rank + 1, in, segment_bytes);
    return Receive(transport, rank + 1, out, segment_bytes);
  }
  const int place = where.place(rank);
  for (int step = 1; step < where.places; step *= 2) transport.Connect(where.rank(place ^ step));
  ConstElements values = in;
  if (where.has_pair(rank)) {
    const Phase phase("take in");
    RM_RETURN_IF_ERROR(Combine(transport, rank - 1, combine, in, out, segment_bytes));
    values = out;
  }
  std::pmr::vector<Swap> swaps(&transport.workspace());
  Piece mine{0, in.count()};
  for (int step = 1; step < where.places; step *= 2) {
    const Phase phase("halve");
    const Piece low{mine.offset, mine.count / 2};
    const Piece high{mine.offset + low.count, mine.count - low.count};
    const bool keeps_low = (place & step) == 0;
    const Swap swap{where.rank(place ^ step), keeps_low ? low : high, keeps_low ? high : low};
    SendPieces(transport, swap.peer, values.Slice(swap.given.offset, swap.given.count),
               segment_bytes);
    mine = swap.kept;
    RM_RETURN_IF_ERROR(Combine(transport, swap.peer, combine, values.Slice(mine.offset, mine.count),
                               out.Slice(mine.offset, mine.count), segment_bytes));
    values = out;
    swaps.push_back(swap);
  }
  for (auto swap = swaps.rbegin(); swap != swaps.rend(); ++swap) {
    const Phase phase("double");
    const auto [peer, kept, given] = *swap;
    SendPieces(transport, peer, out.Slice(kept.offset, kept.count), segment_bytes);
    RM_RETURN_IF_ERROR(
        Receive(transport, peer, out.Slice(given.offset, given.count), segment_bytes));
  }
  if (where.has_pair(rank)) SendPieces(transport, rank - 1, out, segment_bytes);
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

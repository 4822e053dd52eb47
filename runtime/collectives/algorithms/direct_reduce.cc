#include "runtime/collectives/algorithms/direct_reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/algorithms/interleave.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

size_t PlaceOf(int rank, std::span<const int> ranks) {
  return static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

Elements Part(Elements all, Piece piece) {
  return all.Slice(piece.offset, piece.count);
}
ConstElements Part(ConstElements all, Piece piece) {
  return all.Slice(piece.offset, piece.count);
}

}  // namespace

// Everybody begins with the next one, so that no rank is everybody's target at once. What comes
// from the first peer is combined with this rank's values, what comes from each further one with
// the sum so far, piece by piece.
absl::Status DirectReduceSlices(Transport& transport, std::span<const int> ranks,
                                const Combiner& combine, ConstElements in,
                                std::span<const Piece> slices, Elements out, size_t segment_bytes) {
  const size_t places = ranks.size();
  const size_t me = PlaceOf(transport.rank(), ranks);
  for (size_t step = 1; step < places; ++step) {
    const size_t to = (me + step) % places;
    if (to < slices.size()) SendPieces(transport, ranks[to], Part(in, slices[to]), segment_bytes);
  }
  if (me >= slices.size()) return absl::OkStatus();
  const Elements result = Part(out, slices[me]);
  const ConstElements mine = Part(in, slices[me]);
  if (places == 1 && mine.count() > 0 && result.data() != mine.data())
    std::memcpy(result.data(), mine.data(), mine.bytes().size());
  const auto pieces = PiecesOf({0, mine.count()}, PieceElements(in.element_bytes(), segment_bytes));
  std::vector<Receipt> before;  // of the sum so far, by piece
  for (size_t step = 1; step < places; ++step) {
    const int from = ranks[(me + places - step) % places];
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (step > 1) RM_RETURN_IF_ERROR(transport.Wait(before[i]));
      const ConstElements left = step > 1 ? ConstElements(result) : mine;
      const Receipt receipt = transport.PostCombine(
          from, {combine, Part(left, pieces[i]).bytes(), Part(result, pieces[i]).bytes()});
      if (step > 1) {
        before[i] = receipt;
      } else {
        before.push_back(receipt);
      }
    }
  }
  return WaitForAll(transport, before);
}

absl::Status DirectSpreadSlices(Transport& transport, std::span<const int> ranks, Elements data,
                                std::span<const Piece> slices, size_t segment_bytes) {
  const size_t places = ranks.size();
  const size_t me = PlaceOf(transport.rank(), ranks);
  std::vector<Receipt> receipts;
  for (size_t step = 1; step < places; ++step) {
    const size_t from = (me + places - step) % places;
    if (from < slices.size())
      ReceivePieces(transport, ranks[from], Part(data, slices[from]), segment_bytes, &receipts);
    const size_t to = (me + step) % places;
    if (me < slices.size()) SendPieces(transport, ranks[to], Part(data, slices[me]), segment_bytes);
  }
  return WaitForAll(transport, receipts);
}

absl::Status DirectAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                             Elements out, size_t segment_bytes) {
  const int world = transport.world();
  const int me = transport.rank();
  const auto send = [&](int to, Piece piece) { transport.PostSend(to, Part(in, piece).bytes()); };
  const auto sum = [&](Piece piece) -> absl::Status {
    const Elements result = Part(out, piece);
    for (int i = 1; i < world; ++i) {
      const auto left = i == 1 ? Part(in, piece) : ConstElements(result);
      RM_RETURN_IF_ERROR(transport.Wait(
          transport.PostCombine(RingRank(me, -i, world), {combine, left.bytes(), result.bytes()})));
    }
    return absl::OkStatus();
  };
  const auto bytes_of = [&](Piece piece) { return Part(out, piece).bytes(); };
  return SumAndSpread(transport, in.count(), PieceElements(in.element_bytes(), segment_bytes), send,
                      sum, bytes_of);
}

}  // namespace ringmaster::collectives

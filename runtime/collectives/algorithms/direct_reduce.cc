#include "runtime/collectives/algorithms/direct_reduce.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/status.h"
#include "runtime/collectives/algorithms/interleave.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

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

SliceReduction::SliceReduction(Transport& transport, std::span<const int> ranks,
                               const Combiner& combine, ConstElements in,
                               std::span<const Piece> slices, Elements out, size_t segment_bytes)
    : transport_(transport),
      ranks_(ranks),
      combine_(combine),
      in_(in),
      slices_(slices),
      out_(out),
      segment_bytes_(segment_bytes),
      me_(PlaceOf(transport.rank(), ranks)),
      pieces_(&transport.workspace()),
      sums_(&transport.workspace()) {
  if (!owns_slice()) return;
  const auto pieces = PiecesOf(slices_[me_], PieceElements(in.element_bytes(), segment_bytes));
  pieces_.reserve(pieces.size());
  std::ranges::copy(pieces, std::back_inserter(pieces_));
  sums_.reserve(pieces_.size());
}

// Everybody begins with the next one, so that no rank is everybody's target at once.
void SliceReduction::SendTo(size_t step) {
  const size_t to = (me_ + step) % ranks_.size();
  if (to < slices_.size())
    SendPieces(transport_, ranks_[to], Part(in_, slices_[to]), segment_bytes_);
}

// What comes from the first peer is combined with this rank's values, what comes from each further
// one with the sum so far, piece by piece.
Receipt SliceReduction::CombineFrom(size_t step, const Piece& piece) {
  const int from = ranks_[(me_ + ranks_.size() - step) % ranks_.size()];
  const ConstElements left = step > 1 ? ConstElements(out_) : in_;
  return transport_.PostCombine(from,
                                {combine_, Part(left, piece).bytes(), Part(out_, piece).bytes()});
}

void SliceReduction::Begin() {
  if (ranks_.size() == 1) return;
  SendTo(1);
  for (const Piece& piece : pieces_) sums_.push_back(CombineFrom(1, piece));
}

absl::Status SliceReduction::Finish() {
  if (ranks_.size() == 1 && owns_slice() && slices_[me_].count > 0 && out_.data() != in_.data()) {
    const ConstElements mine = Part(in_, slices_[me_]);
    std::memcpy(Part(out_, slices_[me_]).data(), mine.data(), mine.bytes().size());
  }
  for (size_t step = 2; step < ranks_.size(); ++step) {
    SendTo(step);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      RM_RETURN_IF_ERROR(transport_.Wait(sums_[i]));
      sums_[i] = CombineFrom(step, pieces_[i]);
    }
  }
  return WaitForAll(transport_, sums_);
}

void SpreadSlices(Transport& transport, std::span<const int> ranks, Elements data,
                  std::span<const Piece> slices, size_t segment_bytes, Receipts* receipts) {
  const size_t places = ranks.size();
  const size_t me = PlaceOf(transport.rank(), ranks);
  for (size_t step = 1; step < places; ++step) {
    const size_t from = (me + places - step) % places;
    if (from < slices.size())
      ReceivePieces(transport, ranks[from], Part(data, slices[from]), segment_bytes, receipts);
  }
  if (me >= slices.size()) return;
  const std::pmr::vector<int> others = OthersOf(transport, ranks);
  for (const Piece& piece :
       PiecesOf(slices[me], PieceElements(data.element_bytes(), segment_bytes)))
    transport.PostSendToEach(others, Part(data, piece).bytes());
}

absl::Status DirectAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                             Elements out, size_t segment_bytes) {
  const int world = transport.world();
  const int me = transport.rank();
  const auto send = [&](int to, Piece piece) { transport.PostSend(to, Part(in, piece).bytes()); };
  const auto sum = [&](Piece piece) -> absl::Status {
    const Phase phase("combine slice");
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

#include "runtime/collectives/algorithms/transfer.h"

#include <algorithm>

#include "common/check.h"
#include "common/status.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {

size_t PieceElements(size_t element_bytes, size_t segment_bytes) {
  return std::max<size_t>(1, segment_bytes / element_bytes);
}

void SendPieces(Transport& transport, int to, ConstElements from, size_t segment_bytes) {
  const size_t largest = PieceElements(from.element_bytes(), segment_bytes);
  for (const Piece& piece : PiecesOf({0, from.count()}, largest))
    transport.PostSend(to, from.Slice(piece.offset, piece.count).bytes());
}

void ReceivePieces(Transport& transport, int from, Elements into, size_t segment_bytes,
                   Receipts* receipts) {
  const size_t largest = PieceElements(into.element_bytes(), segment_bytes);
  for (const Piece& piece : PiecesOf({0, into.count()}, largest))
    receipts->push_back(transport.PostReceive(from, into.Slice(piece.offset, piece.count).bytes()));
}

void CombinePieces(Transport& transport, int from, const Combiner& combiner, ConstElements mine,
                   Elements into, size_t segment_bytes, Receipts* receipts) {
  const size_t largest = PieceElements(into.element_bytes(), segment_bytes);
  for (const Piece& piece : PiecesOf({0, into.count()}, largest)) {
    receipts->push_back(
        transport.PostCombine(from, {combiner, mine.Slice(piece.offset, piece.count).bytes(),
                                     into.Slice(piece.offset, piece.count).bytes()}));
  }
}

std::pmr::vector<int> OthersOf(Transport& transport) {
  const int world = transport.world();
  std::pmr::vector<int> others(&transport.workspace());
  others.reserve(static_cast<size_t>(world - 1));
  for (int i = 1; i < world; ++i) others.push_back(RingRank(transport.rank(), i, world));
  return others;
}

std::pmr::vector<int> OthersOf(Transport& transport, std::span<const int> ranks) {
  std::pmr::vector<int> others(ranks.begin(), ranks.end(), &transport.workspace());
  const auto self = std::ranges::find(others, transport.rank());
  RM_CHECK(self != others.end(), "ranks without the rank itself");
  std::rotate(others.begin(), self, others.end());
  others.erase(others.begin());
  return others;
}

absl::Status WaitForAll(Transport& transport, std::span<const Receipt> receipts) {
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport.Wait(receipt));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

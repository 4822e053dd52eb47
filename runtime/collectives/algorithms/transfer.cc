#include "runtime/collectives/algorithms/transfer.h"

#include <algorithm>

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

absl::Status WaitForAll(Transport& transport, std::span<const Receipt> receipts) {
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport.Wait(receipt));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

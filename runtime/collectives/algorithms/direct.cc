#include "runtime/collectives/algorithms/direct.h"

#include <cstring>

#include "common/status.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

// One message at least, also of an empty part: ranks that disagree about who has one find out.
void SendPieces(Transport& transport, int to, std::span<const std::byte> bytes, size_t largest) {
  for (const Piece& piece : MessagesOf({0, bytes.size()}, largest))
    transport.PostSend(to, bytes.subspan(piece.offset, piece.count));
}

void ReceivePieces(Transport& transport, int from, std::span<std::byte> bytes, size_t largest,
                   Receipts* receipts) {
  for (const Piece& piece : MessagesOf({0, bytes.size()}, largest))
    receipts->push_back(transport.PostReceive(from, bytes.subspan(piece.offset, piece.count)));
}

void Copy(ConstElements from, Elements to) {
  if (from.count() > 0) std::memmove(to.data(), from.data(), from.bytes().size());
}

}  // namespace

absl::Status DirectGather(Transport& transport, int root, ConstElements mine,
                          std::span<const size_t> counts, Elements out, size_t segment_bytes) {
  if (transport.rank() != root) {
    SendPieces(transport, root, mine.bytes(), segment_bytes);
    return absl::OkStatus();
  }
  const auto parts = PartsOf(counts, &transport.workspace());
  Receipts receipts(&transport.workspace());
  for (int rank = 0; rank < transport.world(); ++rank) {
    const Piece& part = parts[static_cast<size_t>(rank)];
    const Elements into = out.Slice(part.offset, part.count);
    if (rank == root) {
      Copy(mine, into);
    } else {
      ReceivePieces(transport, rank, into.bytes(), segment_bytes, &receipts);
    }
  }
  return WaitForAll(transport, receipts);
}

absl::Status DirectScatter(Transport& transport, int root, ConstElements in,
                           std::span<const size_t> counts, Elements mine, size_t segment_bytes) {
  Receipts receipts(&transport.workspace());
  if (transport.rank() != root) {
    ReceivePieces(transport, root, mine.bytes(), segment_bytes, &receipts);
    return WaitForAll(transport, receipts);
  }
  const auto parts = PartsOf(counts, &transport.workspace());
  for (int rank = 0; rank < transport.world(); ++rank) {
    const Piece& part = parts[static_cast<size_t>(rank)];
    const ConstElements from = in.Slice(part.offset, part.count);
    if (rank == root) {
      Copy(from, mine);
    } else {
      SendPieces(transport, rank, from.bytes(), segment_bytes);
    }
  }
  return absl::OkStatus();
}

// Rank r begins with its neighbour, so that not all send to the same one first.
absl::Status DirectAllToAll(Transport& transport, ConstElements in,
                            std::span<const size_t> send_counts, Elements out,
                            std::span<const size_t> receive_counts, size_t segment_bytes) {
  const int world = transport.world();
  const int rank = transport.rank();
  const auto to = PartsOf(send_counts, &transport.workspace());
  const auto from = PartsOf(receive_counts, &transport.workspace());
  Receipts receipts(&transport.workspace());
  for (int step = 1; step < world; ++step) {
    const int source = RingRank(rank, -step, world);
    const Piece& part = from[static_cast<size_t>(source)];
    ReceivePieces(transport, source, out.Slice(part.offset, part.count).bytes(), segment_bytes,
                  &receipts);
  }
  for (int step = 1; step < world; ++step) {
    const int target = RingRank(rank, step, world);
    const Piece& part = to[static_cast<size_t>(target)];
    SendPieces(transport, target, in.Slice(part.offset, part.count).bytes(), segment_bytes);
  }
  const Piece& mine = to[static_cast<size_t>(rank)];
  Copy(in.Slice(mine.offset, mine.count),
       out.Slice(from[static_cast<size_t>(rank)].offset, mine.count));
  return WaitForAll(transport, receipts);
}

}  // namespace ringmaster::collectives

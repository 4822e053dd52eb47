#include "runtime/collectives/tree.h"

#include <bit>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {

// With places counted from the root, the parent of place v is v without its lowest set bit, and its
// children are v + 2^k for every 2^k below that bit (for the root: below the world size). Far
// children first: their subtrees are the deepest.
absl::Status TreeBroadcast(Transport& transport, int root, std::span<std::byte> data,
                           size_t segment_bytes) {
  const int world = transport.world();
  const int place = RingRank(transport.rank(), -root, world);
  const int reach =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(world))) : place & -place;
  std::vector<int> children;
  for (int step = reach / 2; step >= 1; step /= 2) {
    if (place + step < world) children.push_back(RingRank(root, place + step, world));
  }
  for (const int child : children) transport.Connect(child);

  const std::vector<Piece> pieces = PiecesOf({0, data.size()}, segment_bytes);
  std::vector<Receipt> receipts;
  if (place != 0) {
    const int parent = RingRank(root, place - reach, world);
    for (const Piece& piece : pieces) {
      receipts.push_back(transport.PostReceive(parent, data.subspan(piece.offset, piece.count)));
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (place != 0) RM_RETURN_IF_ERROR(transport.Wait(receipts[i]));
    for (const int child : children)
      transport.PostSend(child, data.subspan(pieces[i].offset, pieces[i].count));
  }
  return absl::OkStatus();
}

absl::Status DisseminationBarrier(Transport& transport) {
  const int world = transport.world();
  const int rank = transport.rank();
  for (int step = 1; step < world; step *= 2) transport.Connect(RingRank(rank, step, world));
  for (int step = 1; step < world; step *= 2) {
    transport.PostSend(RingRank(rank, step, world), {});
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(RingRank(rank, -step, world), {})));
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

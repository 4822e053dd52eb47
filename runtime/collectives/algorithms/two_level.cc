#include "runtime/collectives/algorithms/two_level.h"

#include <algorithm>

#include "common/status.h"
#include "runtime/collectives/algorithms/direct_reduce.h"
#include "runtime/collectives/algorithms/doubling.h"
#include "runtime/collectives/algorithms/halving_doubling.h"
#include "runtime/collectives/algorithms/rank_view.h"
#include "runtime/collectives/algorithms/ring.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

absl::Status BetweenNodes(Transport& transport, const Method& method, const Combiner& combine,
                          Elements slice) {
  const Phase phase("exchange between nodes");
  switch (method.between) {
    case Algorithm::kRing:
      return RingAllreduce(transport, combine, slice, slice, method.segment_bytes);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllreduce(transport, combine, slice, slice, method.segment_bytes);
    default:
      return DoublingAllreduce(transport, combine, slice, slice);
  }
}

// A part of the array that goes through all levels by itself.
struct Chunk {
  std::span<const Piece> slices;  // by place in the node
  SliceReduction sum;

  absl::Status Combine() {
    const Phase phase("combine in the node");
    return sum.Finish();
  }
};

}  // namespace

// While the nodes exchange one chunk, what the next one needs inside each node is under way, and so
// is the spreading of the one before: the transport moves all of it whenever this rank waits.
absl::Status TwoLevelAllreduce(Transport& transport, const Method& method, const Combiner& combine,
                               ConstElements in, Elements out) {
  const NodeMap& nodes = *method.nodes;
  const auto inside = nodes.ranks_of(nodes.node_of(transport.rank()));
  const int count = nodes.least_per_node();
  const auto place = static_cast<size_t>(std::find(inside.begin(), inside.end(), transport.rank()) -
                                         inside.begin());
  std::pmr::memory_resource* const memory = &transport.workspace();
  // Those that have this rank's slice on their nodes; none: it has none itself.
  std::pmr::vector<int> peers(memory);
  if (place < static_cast<size_t>(count)) {
    peers.reserve(static_cast<size_t>(nodes.nodes()));
    for (int node = 0; node < nodes.nodes(); ++node) peers.push_back(nodes.ranks_of(node)[place]);
  }
  const size_t largest = PieceElements(
      in.element_bytes(), TwoLevelChunkBytes(nodes.nodes(), count, method.segment_bytes));
  const auto pieces = MessagesOf({0, in.count()}, largest);
  std::pmr::vector<Piece> slices(memory);  // of all chunks
  slices.reserve(pieces.size() * static_cast<size_t>(count));
  std::pmr::vector<Chunk> chunks(memory);
  chunks.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    for (int i = 0; i < count; ++i) {
      const Piece slice = SliceOf(piece.count, count, i);
      slices.push_back({piece.offset + slice.offset, slice.count});
    }
    const auto own = std::span(slices).last(static_cast<size_t>(count));
    chunks.push_back(
        {own, SliceReduction(transport, inside, combine, in, own, out, method.segment_bytes)});
  }
  chunks.front().sum.Begin();
  Receipts spread(memory);
  for (size_t i = 0; i < chunks.size(); ++i) {
    RM_RETURN_IF_ERROR(chunks[i].Combine());
    if (i + 1 < chunks.size()) chunks[i + 1].sum.Begin();
    if (peers.size() > 1) {
      RankView between(transport, peers);
      const Piece& mine = chunks[i].slices[place];
      RM_RETURN_IF_ERROR(
          BetweenNodes(between, method, combine, out.Slice(mine.offset, mine.count)));
    }
    SpreadSlices(transport, inside, out, chunks[i].slices, method.segment_bytes, &spread);
  }
  const Phase phase("spread in the node");
  return WaitForAll(transport, spread);
}

}  // namespace ringmaster::collectives

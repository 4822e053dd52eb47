#include "runtime/collectives/algorithms/two_level.h"

#include <algorithm>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/algorithms/direct_reduce.h"
#include "runtime/collectives/algorithms/doubling.h"
#include "runtime/collectives/algorithms/halving_doubling.h"
#include "runtime/collectives/algorithms/rank_view.h"
#include "runtime/collectives/algorithms/ring.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

absl::Status BetweenNodes(Transport& transport, const Method& method, const Combiner& combine,
                          Elements slice) {
  switch (method.between) {
    case Algorithm::kRing:
      return RingAllreduce(transport, combine, slice, slice, method.segment_bytes);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllreduce(transport, combine, slice, slice, method.segment_bytes);
    default:
      return DoublingAllreduce(transport, combine, slice, slice);
  }
}

}  // namespace

absl::Status TwoLevelAllreduce(Transport& transport, const Method& method, const Combiner& combine,
                               ConstElements in, Elements out) {
  const NodeMap& nodes = *method.nodes;
  const auto inside = nodes.ranks_of(nodes.node_of(transport.rank()));
  const int count = nodes.least_per_node();
  std::vector<Piece> slices;
  for (int i = 0; i < count; ++i) slices.push_back(SliceOf(in.count(), count, i));
  RM_RETURN_IF_ERROR(
      DirectReduceSlices(transport, inside, combine, in, slices, out, method.segment_bytes));
  const auto place = static_cast<size_t>(std::find(inside.begin(), inside.end(), transport.rank()) -
                                         inside.begin());
  if (place < slices.size() && nodes.nodes() > 1) {
    std::vector<int> peers;
    for (int node = 0; node < nodes.nodes(); ++node) peers.push_back(nodes.ranks_of(node)[place]);
    RankView between(transport, std::move(peers));
    const Piece& mine = slices[place];
    RM_RETURN_IF_ERROR(BetweenNodes(between, method, combine, out.Slice(mine.offset, mine.count)));
  }
  return DirectSpreadSlices(transport, inside, out, slices, method.segment_bytes);
}

}  // namespace ringmaster::collectives

#include "runtime/collectives/algorithms/one_shot.h"

#include <cstring>

#include "common/status.h"
#include "runtime/collectives/algorithms/result_place.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

// Rank 0's values and then each further rank's, onto what is there so far.
absl::Status CombineInOrder(Transport& transport, const Combiner& combine, ConstElements mine,
                            std::span<std::byte> sum) {
  const int me = transport.rank();
  int next = 1;
  if (me == 1) {
    RM_RETURN_IF_ERROR(
        transport.Wait(transport.PostCombine(0, {combine, mine.bytes(), sum, true})));
    next = 2;
  } else if (me > 1) {
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(0, sum)));
  }
  std::span<const std::byte> left = me == 0 ? mine.bytes() : sum;
  for (int rank = next; rank < transport.world(); ++rank) {
    if (rank == me) {
      combine(sum.data(), left.data(), mine.data(), mine.count());
    } else {
      RM_RETURN_IF_ERROR(transport.Wait(transport.PostCombine(rank, {combine, left, sum})));
    }
    left = sum;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status OneShotAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                              Elements out, size_t segment_bytes) {
  const Phase phase("swap");
  const int me = transport.rank();
  const std::pmr::vector<int> others = OthersOf(transport);
  const auto pieces = MessagesOf({0, in.count()}, PieceElements(in.element_bytes(), segment_bytes));
  bool copied = true;
  for (const Piece& piece : pieces) {
    const auto bytes = in.Slice(piece.offset, piece.count).bytes();
    copied = transport.PostSendToEach(others, bytes) && copied;
  }
  // Ranks behind the second one begin with others' values.
  const bool in_place = in.data() == out.data();
  if (in_place && me <= 1 && !copied) {
    RM_ASSIGN_OR_RETURN(copied, transport.TrySends());
  }
  const bool apart = in_place && (me > 1 || !copied);
  ResultPlace place(transport, apart ? out.bytes().size() : 0);
  const Elements sum = apart ? Elements(out.type(), place.bytes()) : out;
  for (const Piece& piece : pieces) {
    RM_RETURN_IF_ERROR(CombineInOrder(transport, combine, in.Slice(piece.offset, piece.count),
                                      sum.Slice(piece.offset, piece.count).bytes()));
  }
  if (!apart) return absl::OkStatus();
  if (!copied) RM_RETURN_IF_ERROR(transport.Finish());
  if (out.count() > 0) std::memcpy(out.data(), sum.data(), out.bytes().size());
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

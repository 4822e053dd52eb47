#include "runtime/collectives/algorithms/ring.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

// Receives each of `incoming` from the rank before, in order, and passes the first `forward` of
// them on.
absl::Status Relay(Transport& transport, std::span<const std::span<std::byte>> incoming,
                   size_t forward) {
  const Phase phase("pass around");
  const int next = RingRank(transport.rank(), 1, transport.world());
  const int previous = RingRank(transport.rank(), -1, transport.world());
  Receipts receipts(&transport.workspace());
  receipts.reserve(incoming.size());
  for (const std::span<std::byte> piece : incoming)
    receipts.push_back(transport.PostReceive(previous, piece));
  for (size_t i = 0; i < incoming.size(); ++i) {
    RM_RETURN_IF_ERROR(transport.Wait(receipts[i]));
    if (i < forward) transport.PostSend(next, incoming[i]);
  }
  return absl::OkStatus();
}

size_t SegmentElements(ConstElements elements, size_t segment_bytes) {
  return std::max<size_t>(1, segment_bytes / elements.element_bytes());
}

// Of all steps of a ring, in each of which a rank receives pieces_of(step).
template <typename PiecesOfStep>
size_t CountPieces(int world, const PiecesOfStep& pieces_of) {
  size_t count = 0;
  for (int step = 1; step < world; ++step) count += pieces_of(step).size();
  return count;
}

// W-1 steps: each rank sends chunk `first`; receives the partial result of the chunk before,
// combines it with its own values and sends that on, and so with the one before, ...: after them it
// holds the whole result of chunk first + 1 (counted around). Passes that on too if `pass_on`.
absl::Status ReduceAround(Transport& transport, const Combiner& combine, ConstElements in,
                          std::span<const Piece> chunks, int first, bool pass_on, Elements work,
                          size_t segment_bytes) {
  const Phase phase("reduce around");
  const int world = transport.world();
  const int next = RingRank(transport.rank(), 1, world);
  const int previous = RingRank(transport.rank(), -1, world);
  const size_t segment = SegmentElements(in, segment_bytes);
  // What comes in a step; in step 0 what this rank begins with.
  const auto pieces_of = [&](int step) {
    return PiecesOf(chunks[static_cast<size_t>(RingRank(first, -step, world))], segment);
  };
  transport.Connect(next);
  const size_t pieces = CountPieces(world, pieces_of);
  std::pmr::vector<Elements> results(&transport.workspace());
  results.reserve(pieces);
  Receipts receipts(&transport.workspace());
  receipts.reserve(pieces);
  size_t forward = 0;  // all but the results of the last chunk
  for (int step = 1; step < world; ++step) {
    forward = results.size();
    for (const Piece& piece : pieces_of(step)) {
      const Elements result = work.Slice(piece.offset, piece.count);
      const ConstElements mine = in.Slice(piece.offset, piece.count);
      results.push_back(result);
      receipts.push_back(transport.PostCombine(previous, {combine, mine.bytes(), result.bytes()}));
    }
  }
  if (pass_on) forward = results.size();
  for (const Piece& piece : pieces_of(0))
    transport.PostSend(next, in.Slice(piece.offset, piece.count).bytes());
  for (size_t i = 0; i < results.size(); ++i) {
    RM_RETURN_IF_ERROR(transport.Wait(receipts[i]));
    if (i < forward) transport.PostSend(next, results[i].bytes());
  }
  return absl::OkStatus();
}

}  // namespace

// The array is cut into W chunks. The first half leaves rank r with the whole result of chunk r+1,
// which it sends as the first of W-1 further steps, in which the results go around once more and
// are only kept.
//
// Nothing is sent from a place that is received into before it must have arrived: a whole result of
// chunk c contains, and so comes after, the partial result of chunk c that this rank sent.
absl::Status RingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                           Elements out, size_t segment_bytes) {
  const int world = transport.world();
  const int rank = transport.rank();
  std::pmr::vector<Piece> chunks(&transport.workspace());
  chunks.reserve(static_cast<size_t>(world));
  for (int chunk = 0; chunk < world; ++chunk) chunks.push_back(SliceOf(in.count(), world, chunk));
  RM_RETURN_IF_ERROR(
      ReduceAround(transport, combine, in, chunks, rank, /*pass_on=*/true, out, segment_bytes));
  const auto pieces_of = [&](int step) {
    const Piece& chunk = chunks[static_cast<size_t>(RingRank(rank, 1 - step, world))];
    return PiecesOf(chunk, SegmentElements(in, segment_bytes));
  };
  std::pmr::vector<std::span<std::byte>> whole(&transport.workspace());
  whole.reserve(CountPieces(world, pieces_of));
  size_t forward = 0;
  for (int step = 1; step < world; ++step) {
    if (step == world - 1) forward = whole.size();
    for (const Piece& piece : pieces_of(step))
      whole.push_back(out.Slice(piece.offset, piece.count).bytes());
  }
  return Relay(transport, whole, forward);
}

absl::Status RingReduceScatter(Transport& transport, const Combiner& combine, ConstElements in,
                               std::span<const Piece> chunks, Elements work, size_t segment_bytes) {
  return ReduceAround(transport, combine, in, chunks, transport.rank() - 1, /*pass_on=*/false, work,
                      segment_bytes);
}

absl::Status RingAllgather(Transport& transport, std::span<const std::byte> mine,
                           std::span<const size_t> part_bytes, std::span<std::byte> out,
                           size_t segment_bytes) {
  const int world = transport.world();
  const int rank = transport.rank();
  std::pmr::vector<size_t> offsets(part_bytes.size(), 0, &transport.workspace());
  for (size_t r = 1; r < offsets.size(); ++r) offsets[r] = offsets[r - 1] + part_bytes[r - 1];
  if (!mine.empty()) std::memmove(&out[offsets[rank]], mine.data(), mine.size());
  if (world == 1) return absl::OkStatus();

  const auto pieces_of = [&](int step) {
    const int r = RingRank(rank, -step, world);
    return PiecesOf({offsets[r], part_bytes[r]}, segment_bytes);
  };
  std::pmr::vector<std::span<std::byte>> incoming(&transport.workspace());
  incoming.reserve(CountPieces(world, pieces_of));
  size_t forward = 0;
  for (int step = 1; step < world; ++step) {
    if (step == world - 1) forward = incoming.size();
    for (const Piece& piece : pieces_of(step))
      incoming.push_back(out.subspan(piece.offset, piece.count));
  }
  transport.Connect(RingRank(rank, 1, world));
  for (const Piece& piece : pieces_of(0)) {
    transport.PostSend(RingRank(rank, 1, world), out.subspan(piece.offset, piece.count));
  }
  return Relay(transport, incoming, forward);
}

}  // namespace ringmaster::collectives

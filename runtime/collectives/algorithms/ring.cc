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
absl::Status Relay(Transport& transport, const std::vector<std::span<std::byte>>& incoming,
                   size_t forward) {
  const Phase phase("pass around");
  const int next = RingRank(transport.rank(), 1, transport.world());
  const int previous = RingRank(transport.rank(), -1, transport.world());
  std::vector<Receipt> receipts;
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
  const auto pieces_of = [&](int chunk) {
    return PiecesOf(chunks[static_cast<size_t>(RingRank(chunk, 0, world))], segment);
  };
  transport.Connect(next);
  std::vector<Elements> results;
  std::vector<Receipt> receipts;
  size_t forward = 0;  // all but the results of the last chunk
  for (int step = 1; step < world; ++step) {
    forward = results.size();
    for (const Piece& piece : pieces_of(first - step)) {
      const Elements result = work.Slice(piece.offset, piece.count);
      const ConstElements mine = in.Slice(piece.offset, piece.count);
      results.push_back(result);
      receipts.push_back(transport.PostCombine(previous, {combine, mine.bytes(), result.bytes()}));
    }
  }
  if (pass_on) forward = results.size();
  for (const Piece& piece : pieces_of(first))
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
  std::vector<Piece> chunks;
  for (int chunk = 0; chunk < world; ++chunk) chunks.push_back(SliceOf(in.count(), world, chunk));
  RM_RETURN_IF_ERROR(
      ReduceAround(transport, combine, in, chunks, rank, /*pass_on=*/true, out, segment_bytes));
  std::vector<std::span<std::byte>> whole;
  size_t forward = 0;
  for (int step = 0; step < world - 1; ++step) {
    if (step == world - 2) forward = whole.size();
    const Piece& chunk = chunks[static_cast<size_t>(RingRank(rank - step, 0, world))];
    for (const Piece& piece : PiecesOf(chunk, SegmentElements(in, segment_bytes)))
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
  std::vector<size_t> offsets(part_bytes.size(), 0);
  for (size_t r = 1; r < offsets.size(); ++r) offsets[r] = offsets[r - 1] + part_bytes[r - 1];
  if (!mine.empty()) std::memmove(&out[offsets[rank]], mine.data(), mine.size());
  if (world == 1) return absl::OkStatus();

  const auto part = [&](int index) {
    const int r = RingRank(index, 0, world);
    return PiecesOf({offsets[r], part_bytes[r]}, segment_bytes);
  };
  std::vector<std::span<std::byte>> incoming;
  size_t forward = 0;
  for (int step = 0; step < world - 1; ++step) {
    if (step == world - 2) forward = incoming.size();
    for (const Piece& piece : part(rank - step - 1))
      incoming.push_back(out.subspan(piece.offset, piece.count));
  }
  transport.Connect(RingRank(rank, 1, world));
  for (const Piece& piece : part(rank)) {
    transport.PostSend(RingRank(rank, 1, world), out.subspan(piece.offset, piece.count));
  }
  return Relay(transport, incoming, forward);
}

}  // namespace ringmaster::collectives

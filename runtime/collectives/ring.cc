#include "runtime/collectives/ring.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

// Pieces being received ahead while one is added.
constexpr size_t kWindow = 2;

// Receives each of `incoming` from the rank before, in order, and passes the first `forward` of
// them on.
absl::Status Relay(Transport& transport, const std::vector<std::span<std::byte>>& incoming,
                   size_t forward) {
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

// Receives partial sums of the pieces from the rank before, adds this rank's values and passes the
// sums on.
absl::Status ReduceAndPassOn(Transport& transport, const std::vector<Piece>& pieces,
                             std::span<const float> in, std::span<float> out,
                             size_t segment_elements) {
  const int next = RingRank(transport.rank(), 1, transport.world());
  const int previous = RingRank(transport.rank(), -1, transport.world());
  std::vector<float> scratch[kWindow];
  std::vector<Receipt> receipts;
  for (auto& buffer : scratch) buffer.resize(segment_elements);
  const auto post = [&](size_t i) {
    const std::span<float> into(scratch[i % kWindow]);
    receipts.push_back(
        transport.PostReceive(previous, WritableBytesOf(into, {0, pieces[i].count})));
  };
  for (size_t i = 0; i < std::min(kWindow, pieces.size()); ++i) post(i);
  for (size_t i = 0; i < pieces.size(); ++i) {
    RM_RETURN_IF_ERROR(transport.Wait(receipts[i]));
    const auto [offset, count] = pieces[i];
    Add(&out[offset], &in[offset], scratch[i % kWindow].data(), count);
    if (i + kWindow < pieces.size()) post(i + kWindow);
    transport.PostSend(next, BytesOf(std::span<const float>(out), pieces[i]));
  }
  return absl::OkStatus();
}

}  // namespace

// The array is cut into W chunks. First, W-1 steps: rank r sends its chunk r; receives the partial
// sum of chunk r-1, adds its own values and sends that on, and so with r-2, ...: after them it
// holds the whole sum of chunk r+1, which it sends as the first of W-1 further steps, in which the
// sums go around once more and are only kept.
//
// Nothing is sent from a place that is received into before it must have arrived: a whole sum of
// chunk c contains, and so comes after, the partial sum of chunk c that this rank sent.
absl::Status RingAllreduceSum(Transport& transport, std::span<const float> in, std::span<float> out,
                              size_t segment_bytes) {
  const int world = transport.world();
  const int rank = transport.rank();
  if (world == 1) {
    std::copy(in.begin(), in.end(), out.begin());
    return absl::OkStatus();
  }
  const size_t segment_elements = std::max<size_t>(1, segment_bytes / sizeof(float));
  const auto chunk = [&](int index) {
    return PiecesOf(SliceOf(in.size(), world, RingRank(index, 0, world)), segment_elements);
  };
  std::vector<Piece> partial;
  std::vector<std::span<std::byte>> whole;
  size_t forward = 0;
  for (int step = 0; step < world - 1; ++step) {
    for (const Piece& piece : chunk(rank - step - 1)) partial.push_back(piece);
    if (step == world - 2) forward = whole.size();
    for (const Piece& piece : chunk(rank - step)) whole.push_back(WritableBytesOf(out, piece));
  }
  transport.Connect(RingRank(rank, 1, world));
  for (const Piece& piece : chunk(rank))
    transport.PostSend(RingRank(rank, 1, world), BytesOf(in, piece));
  RM_RETURN_IF_ERROR(ReduceAndPassOn(transport, partial, in, out, segment_elements));
  return Relay(transport, whole, forward);
}

absl::Status RingAllgather(Transport& transport, std::span<const std::byte> mine,
                           std::span<const size_t> part_bytes, std::span<std::byte> out,
                           size_t segment_bytes) {
  const int world = transport.world();
  const int rank = transport.rank();
  std::vector<size_t> offsets(part_bytes.size(), 0);
  for (size_t r = 1; r < offsets.size(); ++r) offsets[r] = offsets[r - 1] + part_bytes[r - 1];
  std::copy(mine.begin(), mine.end(), out.begin() + static_cast<ptrdiff_t>(offsets[rank]));
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
